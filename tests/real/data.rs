//! Where the real data lies, and how each file becomes edges.
//!
//! A file is decompressed and parsed in one go: the largest is 10 MB. Edges keep the file's order and repetitions;
//! node numbers are the file's own. Next stop: `answers`.

use ruzstd::decoding::StreamingDecoder;
use std::fs::File;
use std::io::{Read, Write};
use std::path::PathBuf;

/// An edge: source, target.
pub type Edge = (u32, u32);

/// The path of a file of real data, or `None` and a line that the check is skipped.
pub fn path(name: &str) -> Option<PathBuf> {
    let directory = match std::env::var_os("KPG_REAL_DATA") {
        Some(directory) => PathBuf::from(directory),
        None => PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/data")),
    };
    let path = directory.join(name);
    if path.is_file() {
        return Some(path);
    }
    // Past the harness, which shows what `println!` says only when a test fails.
    let line = format!("skipped: no real data at {}\n", path.display());
    let _ = std::io::stderr().write_all(line.as_bytes());
    None
}

/// The text of `name`, which is compressed as `name.zst`.
pub fn text(name: &str) -> Option<String> {
    let path = path(&format!("{name}.zst"))?;
    let file = File::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut decoder = StreamingDecoder::new(file).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut text = String::new();
    decoder.read_to_string(&mut text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    Some(text)
}

/// Rows of `N` numbers: all lines but those that begin with `#`.
///
/// # Panics
/// On a line that is not `N` numbers; the message names it.
pub fn rows<const N: usize>(text: &str) -> Vec<[u32; N]> {
    let separator = |c: char| c == ',' || c.is_whitespace();
    let lines = text.lines().enumerate().filter(|(_, line)| !line.starts_with('#'));
    lines
        .map(|(index, line)| {
            let mut columns = line.trim().split(separator);
            let row = std::array::from_fn(|_| {
                let number = columns.next().and_then(|column| column.parse().ok());
                number.unwrap_or_else(|| panic!("line {}: `{line}` is not {N} numbers", index + 1))
            });
            assert!(columns.next().is_none(), "line {}: `{line}` is more than {N} numbers", index + 1);
            row
        })
        .collect()
}

fn edges(name: &str) -> Option<Vec<Edge>> {
    Some(rows(&text(name)?).into_iter().map(|[source, target]| (source, target)).collect())
}

/// Who votes for whom: 103,689 edges.
pub fn wiki_vote() -> Option<Vec<Edge>> {
    edges("snap-wiki-Vote.txt")
}

/// A message: sender, receiver, unix time.
pub type Message = (u32, u32, u32);

/// 59,835 messages in the order of their times.
pub fn college_messages() -> Option<Vec<Message>> {
    let messages = rows(&text("snap-CollegeMsg-temporal.txt")?);
    Some(messages.into_iter().map(|[sender, receiver, time]| (sender, receiver, time)).collect())
}

/// A random tree of 71,391 nodes, edges from parent to child.
pub fn tree11() -> Option<Vec<Edge>> {
    edges("bigdatalog-tree11.csv")
}

/// Chains of roads, 7,035 lines with 7,029 distinct edges.
pub fn road_ol() -> Option<Vec<Edge>> {
    edges("harp-OL.cedge.txt")
}

/// Chains of roads, 21,693 edges.
pub fn road_cal() -> Option<Vec<Edge>> {
    edges("harp-cal.cedge.txt")
}

/// A peer-to-peer network, 26,013 edges.
pub fn gnutella09() -> Option<Vec<Edge>> {
    edges("harp-p2p-Gnutella09.txt")
}

/// Debian 12's package dependencies by name: 283,196 edges, in the order of the file.
pub fn debian12() -> Option<Vec<(String, String)>> {
    let text = text("debian12-depends.tsv")?;
    let split = |line: &str| line.split_once('\t').map(|(package, target)| (package.into(), target.into()));
    Some(text.lines().map(|line| split(line).expect("a line is two names and a tab")).collect())
}

#[test]
fn the_files_are_whole() {
    let count = |name: &str, edges: Option<Vec<Edge>>, expected| {
        assert_eq!(edges.map_or(expected, |edges| edges.len()), expected, "{name}");
    };
    count("wiki-Vote", wiki_vote(), 103_689);
    count("tree11", tree11(), 71_390);
    count("OL", road_ol(), 7_035);
    count("cal", road_cal(), 21_693);
    count("Gnutella09", gnutella09(), 26_013);
    if let Some(messages) = college_messages() {
        assert_eq!(messages.len(), 59_835);
        assert!(messages.is_sorted_by_key(|&(_, _, time)| time));
    }
}

/// The example's data, in its one-line-a-package form, is the same edges.
#[test]
fn the_examples_data_is_the_same_edges() {
    let Some(expected) = debian12() else { return };
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/data/debian12-depends.txt");
    let text = std::fs::read_to_string(path).expect("the example's data is in the repository");
    let mut edges = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let mut words = line.split(' ');
        let package = words.next().expect("splitting gives at least one piece");
        edges.extend(words.map(|target| (package.to_owned(), target.to_owned())));
    }
    assert_eq!(edges.len(), 283_196);
    assert!(edges == expected, "the example's edges differ from the source's");
}

#[test]
fn rows_take_tabs_commas_and_line_ends_of_both_kinds() {
    assert_eq!(rows::<2>("# no row\r\n1\t2\r\n3,4\n5 6"), [[1, 2], [3, 4], [5, 6]]);
}

#[test]
#[should_panic = "line 2: `3` is not 2 numbers"]
fn a_short_row_is_named() {
    rows::<2>("1 2\n3\n");
}
