//! Reading results files.

use serde::Deserialize;

use super::{Results, SCHEMA};

/// Why a results file could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// It is no JSON, or not of the shape of one.
    #[error("byte {offset} (line {line}), {field}: {why}")]
    Field {
        /// The field, such as `data.measurements[0].spec.size`.
        field: String,
        /// Where in the file reading stopped, from 0.
        offset: usize,
        /// The line of it, from 1.
        line: usize,
        /// What is wrong.
        why: String,
    },
    /// It is a report of something else, or of another version.
    #[error("the schema is {found}, not {SCHEMA}")]
    Schema {
        /// The schema that it names.
        found: String,
    },
}

#[derive(Deserialize)]
struct Head {
    schema: String,
}

#[derive(Deserialize)]
struct Envelope {
    data: Results,
}

pub(super) fn read(bytes: &[u8]) -> Result<Results, ReadError> {
    let head: Head = parse(bytes)?;
    if head.schema != SCHEMA {
        return Err(ReadError::Schema { found: head.schema });
    }
    Ok(parse::<Envelope>(bytes)?.data)
}

fn parse<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, ReadError> {
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let failure = |error: &serde_json::Error, field: String| {
        let (line, column) = (error.line(), error.column());
        let before: usize = bytes
            .split_inclusive(|byte| *byte == b'\n')
            .take(line.saturating_sub(1))
            .map(<[u8]>::len)
            .sum();
        // serde_json puts the place at the end of what it says.
        let why = error.to_string();
        let place = format!(" at line {line} column {column}");
        ReadError::Field {
            field: if field == "." {
                "the file".into()
            } else {
                field
            },
            offset: before + column.saturating_sub(1),
            line,
            why: why.strip_suffix(&place).unwrap_or(&why).to_owned(),
        }
    };
    let value = serde_path_to_error::deserialize(&mut json)
        .map_err(|error| failure(error.inner(), error.path().to_string()))?;
    json.end().map_err(|error| failure(&error, ".".into()))?;
    Ok(value)
}
