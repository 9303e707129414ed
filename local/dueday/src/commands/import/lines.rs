//! A file's lines as an editor counts them. A row may be several lines long, and blank lines are no rows.

use std::collections::VecDeque;
use std::io::{self, Read};

/// Reads what `inner` reads, and knows the number of each line that is not blank.
#[derive(Debug)]
pub struct Lines<R> {
    inner: R,
    /// The next byte's place, and its line, from 1.
    place: u64,
    line: u64,
    /// The next byte begins a line.
    begins: bool,
    /// The last byte was a carriage return: a line feed belongs to it.
    after_return: bool,
    /// Where lines begin that are not blank, from the last one asked for on.
    starts: VecDeque<(u64, u64)>,
}

impl<R> Lines<R> {
    pub fn new(inner: R) -> Self {
        Self { inner, place: 0, line: 1, begins: true, after_return: false, starts: VecDeque::new() }
    }

    /// The line of the first row at or after `place`, which is no less than before.
    pub fn first_from(&mut self, place: u64) -> Option<u64> {
        while self.starts.front().is_some_and(|(start, _)| *start < place) {
            self.starts.pop_front();
        }
        self.starts.front().map(|(_, line)| *line)
    }

    fn count(&mut self, byte: u8) {
        match byte {
            b'\n' if self.after_return => {}
            b'\n' | b'\r' => (self.line, self.begins) = (self.line.saturating_add(1), true),
            _ if self.begins => {
                self.starts.push_back((self.place, self.line));
                self.begins = false;
            }
            _ => {}
        }
        self.after_return = byte == b'\r';
        self.place = self.place.saturating_add(1);
    }
}

impl<R: Read> Read for Lines<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        for byte in buffer.get(..read).unwrap_or_default() {
            self.count(*byte);
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_from_counts_blank_lines_and_every_kind_of_line_end() {
        let text = "one\n\n\r\ntwo\r\nthree\rfour\r\r\nfive";
        let mut lines = Lines::new(text.as_bytes());
        io::copy(&mut lines, &mut io::sink()).unwrap();
        let found = ["one", "two", "three", "four", "five"].map(|word| {
            let place = u64::try_from(text.find(word).unwrap()).unwrap();
            lines.first_from(place).unwrap()
        });
        assert_eq!(found, [1, 4, 5, 6, 8]);
        assert_eq!(lines.first_from(u64::MAX), None);
    }
}
