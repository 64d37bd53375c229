//! Values from ANSWERS.tsv, by (data, query).
//!
//! A line is data, query, value and status, separated by tabs; `#` begins a comment. A value is text that may hold
//! several numbers (`2316 ; 5,6920`): [`Answers::numbers`] gives all of them in order. Next stop: `plain`.

use std::collections::HashMap;

/// Known answers.
pub struct Answers {
    values: HashMap<(String, String), String>,
}

impl Answers {
    /// Reads ANSWERS.tsv, or gives `None` (and a line) where it is absent.
    pub fn load() -> Option<Self> {
        let path = crate::data::path("ANSWERS.tsv")?;
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Some(Self::parse(&text))
    }

    /// # Panics
    /// On a line with too few columns, and on a pair (data, query) that comes twice.
    fn parse(text: &str) -> Self {
        let mut values = HashMap::new();
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let columns: Vec<_> = line.split('\t').collect();
            let [data, query, value, _status] = columns[..] else { panic!("`{line}` is not four columns") };
            let twice = values.insert((data.into(), query.into()), value.into());
            assert!(twice.is_none(), "{data}, {query}: two answers");
        }
        Answers { values }
    }

    /// The value as it is written.
    ///
    /// # Panics
    /// If there is no answer to this query over this data: the test asks what nobody has answered.
    pub fn value(&self, data: &str, query: &str) -> &str {
        let value = self.values.get(&(data.to_owned(), query.to_owned()));
        value.unwrap_or_else(|| panic!("no answer to `{query}` over {data}"))
    }

    /// All numbers of the value, in order.
    ///
    /// # Panics
    /// As [`value`](Self::value).
    pub fn numbers(&self, data: &str, query: &str) -> Vec<u64> {
        let words = self.value(data, query).split(|c: char| !c.is_ascii_digit()).filter(|word| !word.is_empty());
        words.map(|word| word.parse().expect("these are digits of a small number")).collect()
    }

    /// The value's first number, which for most is all of it.
    ///
    /// # Panics
    /// As [`value`](Self::value), and if there is no number in it.
    pub fn number(&self, data: &str, query: &str) -> u64 {
        self.numbers(data, query)[0]
    }
}

#[test]
fn values_and_their_numbers() {
    let answers = Answers::parse("# P published\na\ttc\t12\tPV\na\treach ; max,sum\t2316 ; 5,6920\tV\n");
    assert_eq!(answers.number("a", "tc"), 12);
    assert_eq!(answers.value("a", "reach ; max,sum"), "2316 ; 5,6920");
    assert_eq!(answers.numbers("a", "reach ; max,sum"), [2316, 5, 6920]);
}

#[test]
#[should_panic = "no answer to `sg` over a"]
fn a_question_nobody_answered() {
    Answers::parse("a\ttc\t12\tPV\n").value("a", "sg");
}
