//! Counts the lines of a file in the same way as an editor, so that messages can contain the line number of a row. A
//! row may span several lines, and blank lines are not rows.

use std::collections::VecDeque;
use std::io::{self, Read};

/// A reader that passes on the bytes of `inner` and records where its non-blank lines begin.
#[derive(Debug)]
pub struct LineCounter<R> {
    inner: R,
    /// The offset of the next byte in the file.
    offset: u64,
    /// The line of the next byte; the first line is 1.
    line: u64,
    /// Whether the next byte begins a line.
    is_line_start: bool,
    /// Whether the last byte was a carriage return. A line feed then belongs to the same line end.
    is_after_carriage_return: bool,
    /// The offset and the line number of each non-blank line, beginning with the line that was requested last.
    starts: VecDeque<(u64, u64)>,
    /// The bytes from the offset that was requested last to the end of what was read.
    recent: VecDeque<u8>,
}

impl<R> LineCounter<R> {
    /// Creates a counter for the lines of `inner`.
    pub fn new(inner: R) -> Self {
        Self {
            inner,
            offset: 0,
            line: 1,
            is_line_start: true,
            is_after_carriage_return: false,
            starts: VecDeque::new(),
            recent: VecDeque::new(),
        }
    }

    /// Returns the line number of the first non-blank line at or after `offset`; `None` if no such line was read yet.
    /// An offset must not be smaller than in the previous call.
    pub fn line_at(&mut self, offset: u64) -> Option<u64> {
        while self.starts.front().is_some_and(|(start, _)| *start < offset) {
            self.starts.pop_front();
        }
        let past = self.recent.len().saturating_sub(usize_of(self.offset.saturating_sub(offset)));
        drop(self.recent.drain(..past));
        self.starts.front().map(|(_, line)| *line)
    }

    /// Returns the bytes of the file from the offset that [`LineCounter::line_at`] got last to the offset `end`.
    pub fn bytes_until(&mut self, end: u64) -> &[u8] {
        let unread = usize_of(self.offset.saturating_sub(end));
        let length = self.recent.len().saturating_sub(unread);
        self.recent.make_contiguous().get(..length).unwrap_or_default()
    }

    /// Updates the line and the offset for the next `byte` of the file.
    fn count_byte(&mut self, byte: u8) {
        match byte {
            b'\n' if self.is_after_carriage_return => {}
            b'\n' | b'\r' => (self.line, self.is_line_start) = (self.line.saturating_add(1), true),
            _ if self.is_line_start => {
                self.starts.push_back((self.offset, self.line));
                self.is_line_start = false;
            }
            _ => {}
        }
        self.is_after_carriage_return = byte == b'\r';
        self.offset = self.offset.saturating_add(1);
    }
}

impl<R: Read> Read for LineCounter<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        let bytes = buffer.get(..read).unwrap_or_default();
        for byte in bytes {
            self.count_byte(*byte);
        }
        self.recent.extend(bytes);
        Ok(read)
    }
}

/// Converts a number of bytes that are in memory.
fn usize_of(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_at_counts_blank_lines_and_every_kind_of_line_end() {
        let text = "one\n\n\r\ntwo\r\nthree\rfour\r\r\nfive";
        let mut lines = LineCounter::new(text.as_bytes());
        io::copy(&mut lines, &mut io::sink()).unwrap();
        let found = ["one", "two", "three", "four", "five"].map(|word| {
            let offset = u64::try_from(text.find(word).unwrap()).unwrap();
            lines.line_at(offset).unwrap()
        });
        assert_eq!(found, [1, 4, 5, 6, 8]);
        assert_eq!(lines.line_at(u64::MAX), None);
    }

    #[test]
    fn bytes_until_returns_the_bytes_from_the_last_requested_line_on() {
        let mut lines = LineCounter::new("one\ntwo\nthree\n".as_bytes());
        io::copy(&mut lines, &mut io::sink()).unwrap();
        lines.line_at(0);
        assert_eq!(lines.bytes_until(4), b"one\n");
        lines.line_at(4);
        assert_eq!(lines.bytes_until(8), b"two\n");
        assert_eq!(lines.bytes_until(14), b"two\nthree\n");
    }
}
