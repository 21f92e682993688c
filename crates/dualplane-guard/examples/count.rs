//! Counts texts as the guard does: a JSON text on each line of standard input, its tokens on each line of standard output.
//! Usage: `count TOKENIZER.json`. `e2e/guard/vocabularies` holds it to Hugging Face's own counts.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

use std::io::BufRead;

use dualplane_guard::vocabulary::Vocabulary;

fn main() {
    let file = std::env::args().nth(1).expect("a tokenizer.json");
    let words = Vocabulary::read(&std::fs::read(file).unwrap()).unwrap_or_else(|e| panic!("{e}"));
    for line in std::io::stdin().lock().lines() {
        let text: String = serde_json::from_str(&line.unwrap()).unwrap();
        let (tokens, _) = words.count(&text).expect("it can be split");
        println!("{tokens}");
    }
}
