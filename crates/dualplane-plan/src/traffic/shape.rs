//! What a plan takes of the file of a shape: its cells in a few figures, and how many requests there are at once.

use dualplane_shape::{Cell, Shape, quantile};

use super::Traffic;

impl Traffic {
    /// What a shape says of requests.
    ///
    /// # Errors
    /// A sentence that says what contradicts, or what a plan lacks.
    pub fn of(shape: &Shape) -> Result<Self, String> {
        shape.check()?;
        let (concurrency, by_chance) = shape.at_once()?;
        Self::running(shape, concurrency, by_chance)
    }

    /// The same with so many requests at once, whatever the shape says of it.
    ///
    /// # Errors
    /// A sentence that says what contradicts.
    pub fn with(shape: &Shape, concurrency: u64) -> Result<Self, String> {
        let shape = Shape { concurrency: Some(concurrency), ..shape.clone() };
        Self::of(&shape)
    }

    fn running(shape: &Shape, concurrency: u64, by_chance: bool) -> Result<Self, String> {
        let cells = shape.cells()?;
        let point = |of: fn(&Cell) -> f64, share: f64| quantile(&cells, of, share);
        Ok(Self {
            input_p50: point(|c| c.input, 0.5),
            input_p99: point(|c| c.input, 0.99),
            output_p50: point(|c| c.output, 0.5),
            output_p99: point(|c| c.output, 0.99),
            concurrency,
            prefix_percent: (shape.prefix_share * 100.0).round() as u64,
            prefixes: shape.prefixes.unwrap_or(1).max(1),
            by_chance,
            measured: shape.measured,
            source: shape.source.clone(),
            name: shape.name.clone(),
            cells,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Traffic, String> {
        let shape: Shape = serde_json::from_str(text).map_err(|e| e.to_string())?;
        Traffic::of(&shape)
    }

    #[test]
    fn a_histogram_keeps_prompts_and_answers_together() {
        let t = read(
            r#"{"schema": "dualplane.shape/v1", "concurrency": 4, "requests": [
            {"input": 100, "output": 10, "weight": 90}, {"input": 4000, "output": 500, "weight": 10}]}"#,
        )
        .unwrap();
        assert_eq!((t.input_p50, t.input_p99, t.output_p50, t.output_p99), (100, 4000, 10, 500));
    }

    #[test]
    fn two_points_are_met() {
        let t = read(
            r#"{"schema": "dualplane.shape/v1", "arrival_per_second": 2, "seconds": 8.5,
            "input": {"p50": 1000, "p99": 8000}, "output": {"p50": 200, "p99": 900}}"#,
        )
        .unwrap();
        assert!(t.input_p50.abs_diff(1000) < 120 && t.input_p99 == 8000, "{t:?}");
        assert_eq!((t.concurrency, t.by_chance), (17, true));
    }

    #[test]
    fn requests_without_a_number_at_once_need_one() {
        let text = r#"{"schema": "dualplane.shape/v1", "arrival_per_second": 2, "requests": [{"input": 9, "output": 9}]}"#;
        assert!(read(text).unwrap_err().contains("concurrency is missing"));
        let shape: Shape = serde_json::from_str(text).unwrap();
        assert_eq!(Traffic::with(&shape, 7).unwrap().concurrency, 7);
        assert!(read(&text.replace("v1", "v2")).unwrap_err().contains("v2"));
    }
}
