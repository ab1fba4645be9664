use super::{FromValue, Value, typed};
use crate::{Error, ErrorKind};
use serde::de::DeserializeOwned;

/// One row of a result, borrowed from it.
#[derive(Debug, Clone, Copy)]
pub struct Row<'a> {
    columns: &'a [String],
    values: &'a [Value],
}

impl<'a> Row<'a> {
    /// For adapters: a row over parallel slices of names and values.
    #[doc(hidden)]
    pub fn new(columns: &'a [String], values: &'a [Value]) -> Self {
        Self { columns, values }
    }

    /// The value of a column. Where several columns have the name, the last one (rule F4).
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] when there is no such column or its value is of another type.
    pub fn get<T: FromValue>(&self, column: &str) -> Result<T, Error> {
        let index = self.columns.iter().rposition(|c| c == column).ok_or_else(|| {
            Error::new(
                ErrorKind::Invalid,
                format!("no column {column:?}; there are: {}", self.columns.join(", ")),
            )
        })?;
        self.at(index)
    }

    /// The value of the column at an index, from 0.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn at<T: FromValue>(&self, index: usize) -> Result<T, Error> {
        let value = self.values.get(index).ok_or_else(|| {
            Error::new(ErrorKind::Invalid, format!("no column {index}; there are {}", self.values.len()))
        })?;
        T::from_value(value.clone())
    }

    /// The columns' names.
    pub fn columns(&self) -> &'a [String] {
        self.columns
    }

    /// The columns' values.
    pub fn values(&self) -> &'a [Value] {
        self.values
    }

    /// The row as a type of one's own, by column name.
    ///
    /// A blob reads as bytes or as a sequence of them, text also as the name of an enum's variant. An integer is no
    /// `bool`: SQL has none.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] when a field is missing or of another type.
    pub fn typed<T: DeserializeOwned>(&self) -> Result<T, Error> {
        typed::read(self.columns, self.values)
            .map_err(|e| Error::new(ErrorKind::Invalid, format!("the row is not of that type: {e}")))
    }
}

/// The whole result of a statement.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rows {
    columns: Vec<String>,
    rows: Vec<Vec<Value>>,
    read: Option<u64>,
    written: Option<u64>,
}

impl Rows {
    /// For adapters.
    #[doc(hidden)]
    pub fn new(columns: Vec<String>, rows: Vec<Vec<Value>>, read: Option<u64>, written: Option<u64>) -> Self {
        Self { columns, rows, read, written }
    }

    /// The rows in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Row<'_>> {
        self.rows.iter().map(|values| Row { columns: &self.columns, values })
    }

    /// The values of each row, for whoever keeps them: nothing is copied.
    pub fn into_values(self) -> impl ExactSizeIterator<Item = Vec<Value>> {
        self.rows.into_iter()
    }

    /// The first row.
    pub fn first(&self) -> Option<Row<'_>> {
        self.iter().next()
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The columns' names; none for a statement without a result.
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// Rows that the statement read, as the platform bills them. `None` where the host does not count.
    pub fn rows_read(&self) -> Option<u64> {
        self.read
    }

    /// Rows that the statement wrote, those of indexes included, as the platform bills them. `None` where the
    /// host does not count.
    pub fn rows_written(&self) -> Option<u64> {
        self.written
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f4_a_duplicate_column_name_gives_the_last_value() {
        let rows = Rows::new(
            vec!["n".into(), "n".into()],
            vec![vec![Value::Integer(1), Value::from("two")]],
            None,
            None,
        );
        let row = rows.first().unwrap();
        assert_eq!(row.get::<String>("n").unwrap(), "two");
        assert_eq!(row.at::<i64>(0).unwrap(), 1);
        assert_eq!(row.get::<i64>("m").unwrap_err().to_string(), "no column \"m\"; there are: n, n");
    }

    #[test]
    fn typed_reads_by_name() {
        #[derive(serde::Deserialize, PartialEq, Debug)]
        struct Line {
            id: i64,
            text: Option<String>,
            score: f64,
        }
        let columns = ["id", "text", "score"].map(String::from).to_vec();
        let rows =
            Rows::new(columns, vec![vec![Value::Integer(7), Value::Null, Value::Integer(2)]], None, None);
        assert_eq!(rows.first().unwrap().typed::<Line>().unwrap(), Line { id: 7, text: None, score: 2.0 });
    }
}
