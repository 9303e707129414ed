//! Bar charts as SVG.

use std::fmt::Write as _;

/// A chart that is being drawn, in pixels from its upper left corner.
pub struct Chart(String);

impl Chart {
    pub fn new(width: u32, height: u32) -> Self {
        Self(format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" \
             font-size=\"12\">\n<rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n"
        ))
    }

    pub fn title(&mut self, x: f64, text: &str) {
        self.line(format_args!("<text x=\"{x}\" y=\"24\" font-weight=\"bold\">{text}</text>"));
    }

    /// What stands under a group of bars around `x`.
    pub fn caption(&mut self, x: f64, y: f64, text: &str) {
        self.line(format_args!("<text x=\"{x}\" y=\"{y}\" text-anchor=\"middle\">{text}</text>"));
    }

    /// A bar that stands on `base`, with its value above it.
    pub fn bar(&mut self, x: f64, base: f64, (width, height): (f64, f64), colour: &str, value: &str) {
        let (top, middle) = (base - height, x + width / 2.0);
        self.line(format_args!(
            "<rect x=\"{x}\" y=\"{top:.1}\" width=\"{width}\" height=\"{height:.1}\" fill=\"{colour}\"/>\
             <text x=\"{middle}\" y=\"{:.1}\" text-anchor=\"middle\" font-size=\"10\">{value}</text>",
            top - 5.0
        ));
    }

    /// A dashed line across, at `y`.
    pub fn limit(&mut self, from: f64, to: f64, y: f64) {
        self.line(format_args!(
            "<line x1=\"{from}\" x2=\"{to}\" y1=\"{y:.1}\" y2=\"{y:.1}\" stroke=\"#737373\" stroke-dasharray=\"4 3\"/>"
        ));
    }

    /// What each colour stands for.
    pub fn legend<'a>(&mut self, left: f64, y: f64, names: impl IntoIterator<Item = (&'a str, String)>) {
        for (place, (colour, name)) in (0_u32..).zip(names) {
            let x = left + f64::from(place) * 130.0;
            self.line(format_args!(
                "<rect x=\"{x}\" y=\"{y}\" width=\"12\" height=\"12\" fill=\"{colour}\"/>\
                 <text x=\"{}\" y=\"{}\">{name}</text>",
                x + 18.0,
                y + 10.0
            ));
        }
    }

    pub fn finish(self) -> String {
        self.0 + "</svg>\n"
    }

    fn line(&mut self, element: std::fmt::Arguments<'_>) {
        let _ = writeln!(self.0, "{element}");
    }
}
