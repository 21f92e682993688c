//! Where panels stand: from left to right in 24 columns, and what does not fit goes into the next line.

/// Columns of Grafana's grid.
pub(crate) const COLUMNS: u32 = 24;

/// A place in the grid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// Columns from the left.
    pub(crate) x: u32,
    /// Rows from the top.
    pub(crate) y: u32,
    /// Columns.
    pub(crate) width: u32,
    /// Rows.
    pub(crate) height: u32,
}

/// Fills the grid from the top.
#[derive(Debug, Default)]
pub(crate) struct Grid {
    x: u32,
    y: u32,
    /// Height of the line that is being filled.
    line: u32,
}

impl Grid {
    /// The next place of this size.
    pub(crate) fn place(&mut self, width: u32, height: u32) -> Place {
        let width = width.clamp(1, COLUMNS);
        if self.x + width > COLUMNS {
            self.end_line();
        }
        let place = Place { x: self.x, y: self.y, width, height };
        self.x += width;
        self.line = self.line.max(height);
        place
    }

    /// A heading over the whole width.
    pub(crate) fn heading(&mut self) -> Place {
        self.end_line();
        let place = self.place(COLUMNS, 1);
        self.end_line();
        place
    }

    fn end_line(&mut self) {
        self.y += self.line;
        (self.x, self.line) = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_as_high_as_their_highest_panel() {
        let mut grid = Grid::default();
        let all = [grid.heading(), grid.place(16, 8), grid.place(8, 4), grid.place(12, 8), grid.heading()];
        let at: Vec<(u32, u32)> = all.iter().map(|p| (p.x, p.y)).collect();
        assert_eq!(at, [(0, 0), (0, 1), (16, 1), (0, 9), (0, 17)]);
    }
}
