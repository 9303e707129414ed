//! Bar charts as SVG.

use std::fmt::Write as _;

/// A chart as SVG elements. Coordinates are in pixels from the upper left corner.
pub struct SvgChart(String);

/// The place and the size of a bar in a chart.
pub struct ChartBar {
    /// The left edge.
    pub x: f64,
    /// The lower edge.
    pub base: f64,
    pub width: f64,
    pub height: f64,
}

impl SvgChart {
    pub fn new(width: u32, height: u32) -> Self {
        Self(format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" \
             font-size=\"12\">\n<rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n"
        ))
    }

    pub fn add_title(&mut self, x: f64, text: &str) {
        self.add_element(format_args!("<text x=\"{x}\" y=\"24\" font-weight=\"bold\">{text}</text>"));
    }

    /// Adds a caption below a group of bars, centred at `x`.
    pub fn add_caption(&mut self, x: f64, y: f64, text: &str) {
        self.add_element(format_args!("<text x=\"{x}\" y=\"{y}\" text-anchor=\"middle\">{text}</text>"));
    }

    /// Adds `bar` with its value above it.
    pub fn add_bar(&mut self, bar: &ChartBar, colour: &str, value: &str) {
        let &ChartBar { x, base, width, height } = bar;
        let top = base - height;
        let middle = x + width / 2.0;
        self.add_element(format_args!(
            "<rect x=\"{x}\" y=\"{top:.1}\" width=\"{width}\" height=\"{height:.1}\" fill=\"{colour}\"/>\
             <text x=\"{middle}\" y=\"{:.1}\" text-anchor=\"middle\" font-size=\"10\">{value}</text>",
            top - 5.0
        ));
    }

    /// Adds a dashed horizontal line at `y`, which shows a limit.
    pub fn add_limit_line(&mut self, from: f64, to: f64, y: f64) {
        self.add_element(format_args!(
            "<line x1=\"{from}\" x2=\"{to}\" y1=\"{y:.1}\" y2=\"{y:.1}\" stroke=\"#737373\" stroke-dasharray=\"4 3\"/>"
        ));
    }

    /// Adds the legend, which shows the name of each colour in one line.
    pub fn add_legend<'a>(
        &mut self,
        left: f64,
        y: f64,
        colours_and_names: impl IntoIterator<Item = (&'a str, String)>,
    ) {
        for (place, (colour, name)) in (0_u32..).zip(colours_and_names) {
            let x = left + f64::from(place) * 130.0;
            self.add_element(format_args!(
                "<rect x=\"{x}\" y=\"{y}\" width=\"12\" height=\"12\" fill=\"{colour}\"/>\
                 <text x=\"{}\" y=\"{}\">{name}</text>",
                x + 18.0,
                y + 10.0
            ));
        }
    }

    /// Returns the text of the SVG file.
    pub fn into_svg(self) -> String {
        self.0 + "</svg>\n"
    }

    fn add_element(&mut self, element: std::fmt::Arguments<'_>) {
        let _ = writeln!(self.0, "{element}");
    }
}
