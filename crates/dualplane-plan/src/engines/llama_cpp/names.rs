//! Quantisations in names of files and repositories.

use super::recipe::Recipe;

/// Splits `Qwen3-8B-Q4_K_M.gguf`, `unsloth/Qwen3-8B-GGUF:Q4_K_M` or `m-UD-Q4_K_XL-00001-of-00003.gguf` into the model's
/// name and its quantisation.
#[must_use]
pub fn name_and_quant(text: &str) -> (String, Option<String>) {
    let known = |q: &str| Recipe::parse(q).is_some().then(|| q.to_owned());
    if let Some((repo, tag)) = text.rsplit_once(':').filter(|(_, tag)| !tag.contains('/')) {
        // Tags of Ollama put the size first: `8b-instruct-q4_K_M`.
        let quant = known(tag).or_else(|| known(tag.rsplit('-').next().unwrap_or(tag)));
        return (bare(repo).to_owned(), quant);
    }
    let Some(name) = text.strip_suffix(".gguf") else { return (bare(text).to_owned(), None) };
    let name = name.rsplit('/').next().unwrap_or(name);
    let name = match name.rsplit_once("-of-").and_then(|(front, _)| front.rsplit_once('-')) {
        Some((front, number)) if number.bytes().all(|b| b.is_ascii_digit()) => front,
        _ => name,
    };
    match name.rsplit_once(['-', '.']) {
        Some((front, quant)) if known(quant).is_some() => match front.strip_suffix("-UD") {
            Some(front) => (front.to_owned(), Some(format!("UD-{quant}"))),
            None => (front.to_owned(), Some(quant.to_owned())),
        },
        _ => (name.to_owned(), None),
    }
}

/// Whether a name is of GGUF files: a file, or a repository of them.
#[must_use]
pub fn names_gguf(id: &str) -> bool {
    let id = id.to_ascii_lowercase();
    let repo =
        id.rsplit_once(':').filter(|(_, tag)| !tag.contains('/')).map_or(id.as_str(), |(repo, _)| repo);
    id.ends_with(".gguf") || repo.ends_with("-gguf")
}

fn bare(repo: &str) -> &str {
    ["-GGUF", "-gguf", "-Gguf"].iter().find_map(|s| repo.strip_suffix(s)).unwrap_or(repo)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantisations_stand_in_names() {
        for (text, name, quant) in [
            ("/models/Qwen3-8B-Q4_K_M.gguf", "Qwen3-8B", Some("Q4_K_M")),
            ("Qwen3-8B.Q8_0.gguf", "Qwen3-8B", Some("Q8_0")),
            ("m-UD-Q4_K_XL-00001-of-00003.gguf", "m", Some("UD-Q4_K_XL")),
            ("unsloth/Qwen3-8B-GGUF:IQ4_XS", "unsloth/Qwen3-8B", Some("IQ4_XS")),
            ("llama3.1:8b-instruct-q4_K_M", "llama3.1", Some("q4_K_M")),
            ("Qwen/Qwen3-8B", "Qwen/Qwen3-8B", None),
            ("model.gguf", "model", None),
        ] {
            assert_eq!(name_and_quant(text), (name.to_owned(), quant.map(str::to_owned)), "{text}");
        }
    }
}
