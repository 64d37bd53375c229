//! From a file to edges between small numbers.
//!
//! ```text
//! "0ad dpkg libc6"  ──►  (0, 1) (0, 2)   and   names: 0 = 0ad, 1 = dpkg, 2 = libc6
//! ```
//!
//! Names get their ids in the order in which the file first mentions them. The file is read line by line and never
//! held whole; kept are 8 bytes an edge and each name once. Edges come out sorted and distinct: the queries are about
//! sets, and a repeated line would be an edge that has to be removed twice. Next stop: `plain`.

use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What a line of the file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A source and a target, separated by a tab, else by a comma, else by blanks.
    Edges,
    /// A node and all its targets (none is fine), separated by blanks.
    Adjacency,
}

/// A graph: edges between ids, and the names behind the ids.
#[derive(Debug, Default)]
pub struct Graph {
    /// (source, target), sorted, distinct.
    pub edges: Vec<(u32, u32)>,
    /// Names by id.
    pub names: Names,
    /// How many edges the file repeats.
    pub repeated: usize,
}

/// Names interned: ids 0, 1, 2, … in the order of their first mention.
#[derive(Debug, Default)]
pub struct Names {
    by_id: Vec<Arc<str>>,
    ids: HashMap<Arc<str>, u32>,
}

impl Names {
    /// How many there are; every id is below.
    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    /// The name behind an id.
    ///
    /// # Panics
    /// If no name has this id.
    pub fn name(&self, id: u32) -> &str {
        &self.by_id[id as usize]
    }

    /// The id of a name, if the file mentions it.
    pub fn id(&self, name: &str) -> Option<u32> {
        self.ids.get(name).copied()
    }

    /// The id of a name, a new one if it is new; `None` when 2^32 ids are used up.
    fn intern(&mut self, name: &str) -> Option<u32> {
        if let Some(id) = self.id(name) {
            return Some(id);
        }
        let id = u32::try_from(self.by_id.len()).ok()?;
        let name: Arc<str> = name.into();
        self.by_id.push(name.clone());
        self.ids.insert(name, id);
        Some(id)
    }
}

/// Why there is no graph. Shown as a sentence that says what to do.
#[derive(Debug)]
pub enum LoadError {
    /// No such file.
    Missing(PathBuf),
    /// The system would not let us read it.
    Io(PathBuf, io::Error),
    /// A line that is not what the form says.
    Line {
        /// The file.
        path: PathBuf,
        /// The line's number, from 1.
        line: u64,
        /// What is wrong with it.
        what: String,
    },
    /// Not one edge.
    Empty(PathBuf),
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadError::Missing(path) if *path == built_in() => write!(
                f,
                "the data of this example is not at {}: run it inside the repository, or give the path of an edge list.",
                path.display()
            ),
            LoadError::Missing(path) => write!(
                f,
                "there is no file {}: check the path, or give none and the example takes its own data.",
                path.display()
            ),
            LoadError::Io(path, error) => write!(f, "{} cannot be read: {error}.", path.display()),
            LoadError::Line { path, line, what } => write!(f, "{}, line {line}: {what}", path.display()),
            LoadError::Empty(path) => write!(
                f,
                "{} holds no edge: a line is a source and a target, separated by a tab, a comma or blanks.",
                path.display()
            ),
        }
    }
}

impl std::error::Error for LoadError {}

/// Where the data that comes with the example lies; its form is [`Form::Adjacency`].
pub fn built_in() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/data/debian12-depends.txt")
}

/// Reads a file.
///
/// # Errors
/// Its text is for the user: no file, no permission, a bad line (with its number), no edge.
pub fn load(path: &Path, form: Form) -> Result<Graph, LoadError> {
    let file = File::open(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => LoadError::Missing(path.into()),
        _ => LoadError::Io(path.into(), error),
    })?;
    let graph = parse(BufReader::with_capacity(1 << 16, file), form).map_err(|stop| match stop {
        Stop::Io(error) => LoadError::Io(path.into(), error),
        Stop::Line(line, what) => LoadError::Line { path: path.into(), line, what },
    })?;
    if graph.edges.is_empty() { Err(LoadError::Empty(path.into())) } else { Ok(graph) }
}

/// Why parsing stopped: [`LoadError`] without the path.
#[derive(Debug)]
pub enum Stop {
    /// Reading failed.
    Io(io::Error),
    /// This line, counted from 1, is bad, and why.
    Line(u64, String),
}

/// Reads lines of the given form.
///
/// # Errors
/// The first bad line, or a failure to read.
pub fn parse(mut reader: impl BufRead, form: Form) -> Result<Graph, Stop> {
    let mut graph = Graph::default();
    let mut bytes = Vec::new();
    let mut number = 0;
    loop {
        bytes.clear();
        if reader.read_until(b'\n', &mut bytes).map_err(Stop::Io)? == 0 {
            break;
        }
        number += 1;
        let line = std::str::from_utf8(&bytes).map_err(|_| {
            Stop::Line(number, "this is no UTF-8 text; if the file is compressed, unpack it first.".into())
        })?;
        let line = line.trim_start_matches('\u{feff}').trim(); // some editors begin a file with a byte order mark
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        match form {
            Form::Edges => edge_line(&mut graph, line),
            Form::Adjacency => node_line(&mut graph, line),
        }
        .map_err(|what| Stop::Line(number, what))?;
    }
    let read = graph.edges.len();
    graph.edges.sort_unstable();
    graph.edges.dedup();
    graph.repeated = read - graph.edges.len();
    Ok(graph)
}

fn edge_line(graph: &mut Graph, line: &str) -> Result<(), String> {
    if line.contains('\t') {
        edge(graph, line.split('\t').map(str::trim))
    } else if line.contains(',') {
        edge(graph, line.split(',').map(str::trim))
    } else {
        edge(graph, line.split_whitespace())
    }
}

fn edge<'a>(graph: &mut Graph, mut columns: impl Iterator<Item = &'a str>) -> Result<(), String> {
    match (columns.next(), columns.next(), columns.count()) {
        (Some(""), _, _) | (_, Some(""), _) => Err("a column is empty; a line is a source and a target.".into()),
        (Some(source), Some(target), 0) => {
            let edge = (intern(graph, source)?, intern(graph, target)?);
            graph.edges.push(edge);
            Ok(())
        }
        (_, None, _) => Err("one column; a line is a source and a target.".into()),
        (_, _, more) => Err(format!(
            "{} columns; a line is a source and a target, or, with --adjacency, a node and all its targets.",
            2 + more
        )),
    }
}

fn node_line(graph: &mut Graph, line: &str) -> Result<(), String> {
    let mut words = line.split_whitespace();
    let Some(node) = words.next() else { return Ok(()) };
    let node = intern(graph, node)?;
    for target in words {
        let target = intern(graph, target)?;
        graph.edges.push((node, target));
    }
    Ok(())
}

fn intern(graph: &mut Graph, name: &str) -> Result<u32, String> {
    graph.names.intern(name).ok_or_else(|| "this name is one more than 32-bit ids can tell apart.".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use quickcheck::quickcheck;

    fn edges(text: &str, form: Form) -> Vec<(String, String)> {
        let graph = parse(text.as_bytes(), form).expect("this text is fine");
        let name = |id| graph.names.name(id).to_owned();
        graph.edges.iter().map(|&(source, target)| (name(source), name(target))).collect()
    }

    fn bad_line(text: &str, form: Form) -> (u64, String) {
        match parse(text.as_bytes(), form) {
            Err(Stop::Line(line, what)) => (line, what),
            other => panic!("{text:?} gave {other:?}"),
        }
    }

    fn pairs(list: &[(&str, &str)]) -> Vec<(String, String)> {
        list.iter().map(|&(source, target)| (source.into(), target.into())).collect()
    }

    #[test]
    fn tab_comma_blank_and_comments() {
        let text = "\u{feff}# a comment\r\n1\t2\r\n\r\n2, 3\n  7   8  \n#9 9\nJohn Smith,Jane\nlast\tline";
        let expected = pairs(&[("1", "2"), ("2", "3"), ("7", "8"), ("John Smith", "Jane"), ("last", "line")]);
        assert_eq!(edges(text, Form::Edges), expected);
    }

    #[test]
    fn repeated_edges_are_counted_and_dropped() {
        let graph = parse(&b"b a\nb a\na b\nb a\na a\n"[..], Form::Edges).unwrap();
        assert_eq!((graph.edges, graph.repeated), (vec![(0, 1), (1, 0), (1, 1)], 2));
        assert_eq!((graph.names.id("b"), graph.names.id("a"), graph.names.id("c")), (Some(0), Some(1), None));
    }

    #[test]
    fn one_line_a_node() {
        assert_eq!(edges("a b c\nalone\nb c\n", Form::Adjacency), pairs(&[("a", "b"), ("a", "c"), ("b", "c")]));
    }

    #[test]
    fn a_bad_line_is_named() {
        let (line, what) = bad_line("1 2\n# fine\n3\n", Form::Edges);
        assert!(line == 3 && what.contains("one column"), "{line}: {what}");
        let (line, what) = bad_line("1 2 1082040961\n", Form::Edges);
        assert!(line == 1 && what.contains("3 columns"), "{line}: {what}");
        assert!(bad_line("1,,2", Form::Edges).1.contains("empty"));
        assert!(bad_line(",2", Form::Edges).1.contains("empty"));
        match parse(&b"a b\n\xff\xfe\n"[..], Form::Adjacency) {
            Err(Stop::Line(2, what)) => assert!(what.contains("UTF-8")),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_is_not_there_is_a_sentence() {
        let missing = load(Path::new("no/such/file"), Form::Edges).unwrap_err().to_string();
        assert!(missing.contains("there is no file no/such/file"), "{missing}");
        assert!(LoadError::Missing(built_in()).to_string().contains("inside the repository"));
        let directory = load(Path::new(env!("CARGO_MANIFEST_DIR")), Form::Edges).unwrap_err().to_string();
        assert!(directory.contains("cannot be read"), "{directory}");
    }

    #[test]
    fn the_built_in_data_is_whole() {
        let graph = load(&built_in(), Form::Adjacency).unwrap();
        assert_eq!((graph.edges.len(), graph.names.len(), graph.repeated), (283_196, 64_257, 0));
        let (source, target) = (graph.names.id("0ad").unwrap(), graph.names.id("libc6").unwrap());
        assert!(graph.edges.binary_search(&(source, target)).is_ok());
    }

    quickcheck! {
        fn both_forms_give_the_same_edges(list: Vec<(u8, u8)>) -> bool {
            let text: String = list.iter().map(|(source, target)| format!("n{source} n{target}\n")).collect();
            let mut distinct = list;
            distinct.sort_unstable();
            distinct.dedup();
            edges(&text, Form::Edges) == edges(&text, Form::Adjacency)
                && edges(&text, Form::Edges).len() == distinct.len()
        }

        fn any_bytes_are_an_answer_or_a_line(bytes: Vec<u8>) -> bool {
            let lines = bytes.split(|&byte| byte == b'\n').count() as u64;
            [Form::Edges, Form::Adjacency].into_iter().all(|form| match parse(&bytes[..], form) {
                Ok(_) => true,
                Err(Stop::Line(line, _)) => (1..=lines).contains(&line),
                Err(Stop::Io(_)) => false,
            })
        }
    }
}
