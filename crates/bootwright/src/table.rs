//! Tables in the manner of kubectl: no borders, and as wide as the terminal.

use comfy_table::presets::NOTHING;
use comfy_table::{Cell, Color, ContentArrangement, Table};

use crate::printer::{Printer, Tone};

/// A table under construction.
pub(crate) struct Columns {
    table: Table,
    colors: bool,
}

impl Columns {
    pub(crate) fn new(printer: &Printer, header: &[&str]) -> Self {
        let mut table = Table::new();
        table.load_style(NOTHING);
        match Printer::width() {
            Some(width) => table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width),
            None => table.set_content_arrangement(ContentArrangement::Disabled),
        };
        let colors = printer.colors();
        if colors {
            table.enforce_styling();
        } else {
            table.force_no_tty();
        }
        table.set_header(header.iter().map(Cell::new));
        for column in table.column_iter_mut() {
            column.set_padding((0, 2));
        }
        Self { table, colors }
    }

    pub(crate) fn row(&mut self, cells: Vec<(Tone, String)>) {
        let colors = self.colors;
        self.table.add_row(cells.into_iter().map(|(tone, text)| {
            let cell = Cell::new(text);
            match tone {
                _ if !colors => cell,
                Tone::Good => cell.fg(Color::Green),
                Tone::Change => cell.fg(Color::Cyan),
                Tone::Look => cell.fg(Color::Yellow),
                Tone::Bad => cell.fg(Color::Red),
                Tone::Quiet => cell.fg(Color::DarkGrey),
                Tone::Plain => cell,
            }
        }));
    }

    pub(crate) fn print(&self, printer: &mut Printer) {
        for line in self.table.lines() {
            printer.line(line.trim_end());
        }
    }
}
