//! The files of the tree, and Rust code as the checks see it.
//!
//! [`code`] blanks comments and literals, so that a word found is a word of the program; positions and lines stay. It
//! knows as much of Rust as that needs: nested comments, raw strings, lifetimes beside characters.
//! Next stop: `floors`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// A text file of the tree.
pub struct Source {
    /// Relative to the root, with `/`.
    pub path: String,
    /// What it holds.
    pub text: String,
}

impl Source {
    /// A made-up file, for canaries.
    pub fn new(path: &str, text: &str) -> Self {
        Source { path: path.to_string(), text: text.to_string() }
    }
    pub fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }
}

/// Where the workspace lies.
pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// All text files of the tree, by path; not what builds leave behind.
pub fn all() -> Vec<Source> {
    let mut out = Vec::new();
    walk(&root(), "", &mut out);
    out.sort_by(|a: &Source, b| a.path.cmp(&b.path));
    assert!(out.iter().any(|source| source.path == "src/lib.rs"), "the walk starts at the root of the workspace");
    out
}

fn walk(directory: &Path, prefix: &str, out: &mut Vec<Source>) {
    for entry in fs::read_dir(directory).expect("the tree can be read") {
        let entry = entry.expect("the tree can be read");
        let name = entry.file_name().into_string().expect("file names are text");
        let path = format!("{prefix}{name}");
        let kind = entry.file_type().expect("the tree can be read");
        if name == ".git" {
            continue;
        }
        if kind.is_dir() {
            if !name.starts_with("target") {
                walk(&entry.path(), &format!("{path}/"), out);
            }
        } else if kind.is_file()
            && let Ok(text) = fs::read_to_string(entry.path())
        {
            out.push(Source { path, text });
        }
    }
}

/// The same text with comments and the insides of literals blank.
pub fn code(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while at < chars.len() {
        let end = literal_end(&chars, at);
        if end > at {
            out.extend(chars[at..end].iter().map(|c| if *c == '\n' { '\n' } else { ' ' }));
            at = end;
        } else {
            out.push(chars[at]);
            at += 1;
        }
    }
    out
}

/// Where the comment or literal that starts at `at` ends; `at`, if none does.
fn literal_end(chars: &[char], at: usize) -> usize {
    let get = |index: usize| chars.get(index).copied().unwrap_or('\0');
    let line_end = || (at..chars.len()).find(|i| chars[*i] == '\n').unwrap_or(chars.len());
    match (get(at), get(at + 1)) {
        ('/', '/') => line_end(),
        ('/', '*') => block_end(chars, at),
        ('"', _) => string_end(chars, at + 1),
        ('r', '"' | '#') if at == 0 || !is_word(chars[at - 1]) || chars[at - 1] == 'b' => raw_end(chars, at),
        // A lifetime has no closing quote right after its first character.
        ('\'', '\\') => (at + 3..chars.len()).find(|i| chars[*i] == '\'').map_or(at, |end| end + 1),
        ('\'', _) if get(at + 2) == '\'' => at + 3,
        _ => at,
    }
}

fn block_end(chars: &[char], start: usize) -> usize {
    let (mut at, mut depth) = (start, 0);
    while at + 1 < chars.len() {
        match (chars[at], chars[at + 1]) {
            ('/', '*') => depth += 1,
            ('*', '/') => depth -= 1,
            _ => {
                at += 1;
                continue;
            }
        }
        at += 2;
        if depth == 0 {
            return at;
        }
    }
    chars.len()
}

fn string_end(chars: &[char], mut at: usize) -> usize {
    while at < chars.len() && chars[at] != '"' {
        at += if chars[at] == '\\' { 2 } else { 1 };
    }
    (at + 1).min(chars.len())
}

fn raw_end(chars: &[char], start: usize) -> usize {
    let hashes = chars[start + 1..].iter().take_while(|c| **c == '#').count();
    if chars.get(start + 1 + hashes) != Some(&'"') {
        return start;
    }
    let closes =
        |i: &usize| chars[*i] == '"' && chars[*i + 1..].iter().take(hashes).filter(|c| **c == '#').count() == hashes;
    (start + 2 + hashes..chars.len()).find(closes).map_or(chars.len(), |end| end + 1 + hashes)
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Where `word` stands in `code` as a word of its own.
pub fn words<'a>(code: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    code.match_indices(word).map(|(at, _)| at).filter(move |at| {
        let before = code[..*at].chars().next_back().is_some_and(is_word);
        let after = code[at + word.len()..].chars().next().is_some_and(is_word);
        !before && !after
    })
}

/// The line number at a position.
pub fn line(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

/// The identifier at the start of `text`.
pub fn identifier(text: &str) -> &str {
    &text[..text.find(|c| !is_word(c)).unwrap_or(text.len())]
}

/// The identifiers that follow a path's `::`: one, or those at the first level of a group.
pub fn heads(rest: &str) -> Vec<&str> {
    let Some(group) = rest.strip_prefix('{') else { return vec![identifier(rest)] };
    let (mut depth, mut out, mut fresh) = (0, Vec::new(), true);
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => fresh = true,
            c if fresh && is_word(c) => {
                out.push(identifier(&group[at..]));
                fresh = false;
            }
            _ => {}
        }
    }
    out
}

/// `code` with what is compiled for tests only blank, and the names of modules in other files that are.
pub fn without_tests(code: &str) -> (String, Vec<String>) {
    let (mut out, mut modules) = (code.to_string(), Vec::new());
    for (at, _) in code.match_indices("#[cfg(") {
        let close = code[at..].find(']').map_or(code.len(), |end| at + end + 1);
        let condition = code[at..close].replace("not(test)", "");
        if words(&condition, "test").next().is_none() {
            continue;
        }
        let item = &code[close..];
        let opens = item.find('{').unwrap_or(item.len());
        let ends = item.find(';').unwrap_or(item.len());
        let len = if ends < opens {
            if let Some((_, name)) = item[..ends].rsplit_once("mod ") {
                modules.push(name.trim().to_string());
            }
            ends + 1
        } else {
            braced(item, opens)
        };
        let blank: String = item[..len].chars().map(|c| if c == '\n' { '\n' } else { ' ' }).collect();
        // As many bytes, so that positions stay: what is not ASCII counts for several blanks.
        let blank = format!("{blank}{}", " ".repeat(len - blank.len()));
        out.replace_range(close..close + len, &blank);
    }
    (out, modules)
}

/// The length of `item` up to the brace that closes the one at `open`.
fn braced(item: &str, open: usize) -> usize {
    let mut depth = 0;
    for (at, c) in item[open..].char_indices() {
        depth += match c {
            '{' => 1,
            '}' => -1,
            _ => 0,
        };
        if depth == 0 {
            return open + at + 1;
        }
    }
    item.len()
}

/// Files that are modules for tests only, by path.
pub fn test_files(all: &[Source]) -> BTreeSet<String> {
    let mut out = BTreeSet::new();
    for source in all.iter().filter(|source| source.is_rust()) {
        let directory = match source.path.rsplit_once('/') {
            Some((directory, "mod.rs" | "lib.rs" | "main.rs")) => directory,
            _ => source.path.trim_end_matches(".rs"),
        };
        for module in without_tests(&code(&source.text)).1 {
            out.insert(format!("{directory}/{module}.rs"));
            out.insert(format!("{directory}/{module}/mod.rs"));
        }
    }
    out
}

#[test]
fn code_is_what_the_compiler_sees() {
    let text = "a // b\nc /* d /* e */ f */ g \"h \\\" i\" j r#\"k \" l\"# 'm' '\\'' &'n o b\"p\" br\"q\" bar#r";
    let seen = code(text);
    assert_eq!(seen.len(), text.len());
    let words: Vec<_> = seen.split_whitespace().collect();
    assert_eq!(words, ["a", "c", "g", "j", "&'n", "o", "b", "b", "bar#r"]);
}

#[test]
fn tests_are_left_out() {
    let text = "fn a() {}\n#[cfg(test)]\nmod tests { fn b() { { } } }\n#[cfg(all(test, loom))]\nmod c;\n#[cfg(not(test))]\nfn d() {}";
    let (rest, modules) = without_tests(text);
    assert!(rest.contains("fn a") && rest.contains("fn d") && !rest.contains("fn b"), "{rest}");
    assert_eq!(modules, ["c"]);
    let files = [Source::new("x/y.rs", text), Source::new("z/mod.rs", text)];
    assert!(test_files(&files).contains("x/y/c.rs") && test_files(&files).contains("z/c.rs"));
}
