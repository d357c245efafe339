//! Serialisable values as Python objects, as a reader of their JSON would make them: numbers that are not finite are None, a variant is its name,
//! or a dict of its name and what it has. Writing and reading the text would take as long as a short trial; what hardly anybody reads may stay text.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString};
use pyo3::IntoPyObjectExt;
use serde::ser::{self, Serialize};
use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;

type Object<'py> = Bound<'py, PyAny>;

/// A value as Python objects.
pub fn of<'py>(py: Python<'py>, value: &impl Serialize) -> PyResult<Object<'py>> {
    value.serialize(Objects { py, text: None }).map_err(|failure| failure.0)
}

/// A value as Python objects, but for one of its own fields, which is its JSON, as bytes.
pub fn with_text<'py>(py: Python<'py>, value: &impl Serialize, field: &'static str) -> PyResult<Object<'py>> {
    value.serialize(Objects { py, text: Some(field) }).map_err(|failure| failure.0)
}

/// What could not be made.
#[derive(Debug)]
struct Failure(PyErr);

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Failure {}

impl From<PyErr> for Failure {
    fn from(e: PyErr) -> Failure {
        Failure(e)
    }
}

impl ser::Error for Failure {
    fn custom<T: fmt::Display>(problem: T) -> Failure {
        Failure(crate::refused(problem))
    }
}

type Made<'py> = Result<Object<'py>, Failure>;

thread_local! {
    /// The names of fields, which stand in the program: where each is, and how long.
    static NAMES: RefCell<HashMap<(usize, usize), Py<PyString>>> = RefCell::default();
}

/// The text of a field's name, made once for each thread.
fn name<'py>(py: Python<'py>, name: &'static str) -> Bound<'py, PyString> {
    NAMES.with_borrow_mut(|names| {
        let known = names.entry((name.as_ptr() as usize, name.len()));
        known.or_insert_with(|| PyString::intern(py, name).unbind()).bind(py).clone()
    })
}

#[derive(Clone, Copy)]
struct Objects<'py> {
    py: Python<'py>,
    /// The field of the value that stays text; those of its parts do not.
    text: Option<&'static str>,
}

impl<'py> Objects<'py> {
    /// For what is inside a value.
    fn inside(self) -> Objects<'py> {
        Objects { text: None, ..self }
    }

    fn object(self, value: impl IntoPyObjectExt<'py>) -> Made<'py> {
        Ok(value.into_bound_py_any(self.py)?)
    }

    fn variant(self, variant: &'static str, value: Object<'py>) -> Made<'py> {
        let d = PyDict::new(self.py);
        d.set_item(name(self.py, variant), value)?;
        Ok(d.into_any())
    }
}

macro_rules! plain {
    ($($method:ident: $type:ty),*) => {
        $(fn $method(self, v: $type) -> Made<'py> {
            self.object(v)
        })*
    };
}

impl<'py> ser::Serializer for Objects<'py> {
    type Ok = Object<'py>;
    type Error = Failure;
    type SerializeSeq = Values<'py>;
    type SerializeTuple = Values<'py>;
    type SerializeTupleStruct = Values<'py>;
    type SerializeTupleVariant = Values<'py>;
    type SerializeMap = Fields<'py>;
    type SerializeStruct = Fields<'py>;
    type SerializeStructVariant = Fields<'py>;

    plain!(serialize_bool: bool, serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64, serialize_i128: i128);
    plain!(serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64, serialize_u128: u128);
    plain!(serialize_char: char, serialize_str: &str);

    fn serialize_f32(self, v: f32) -> Made<'py> {
        self.serialize_f64(v.into())
    }

    fn serialize_f64(self, v: f64) -> Made<'py> {
        if v.is_finite() {
            self.object(v)
        } else {
            self.serialize_unit()
        }
    }

    fn serialize_bytes(self, v: &[u8]) -> Made<'py> {
        Ok(PyList::new(self.py, v)?.into_any())
    }

    fn serialize_none(self) -> Made<'py> {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, v: &T) -> Made<'py> {
        v.serialize(self)
    }

    fn serialize_unit(self) -> Made<'py> {
        Ok(self.py.None().into_bound(self.py))
    }

    fn serialize_unit_struct(self, _: &'static str) -> Made<'py> {
        self.serialize_unit()
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Made<'py> {
        Ok(name(self.py, variant).into_any())
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, v: &T) -> Made<'py> {
        v.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(self, _: &'static str, _: u32, variant: &'static str, v: &T) -> Made<'py> {
        self.variant(variant, v.serialize(self)?)
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Values<'py>, Failure> {
        Ok(Values { to: self, list: PyList::empty(self.py), variant: None })
    }

    fn serialize_tuple(self, count: usize) -> Result<Values<'py>, Failure> {
        self.serialize_seq(Some(count))
    }

    fn serialize_tuple_struct(self, _: &'static str, count: usize) -> Result<Values<'py>, Failure> {
        self.serialize_seq(Some(count))
    }

    fn serialize_tuple_variant(self, _: &'static str, _: u32, variant: &'static str, _: usize) -> Result<Values<'py>, Failure> {
        Ok(Values { to: self, list: PyList::empty(self.py), variant: Some(variant) })
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Fields<'py>, Failure> {
        Ok(Fields { to: self, dict: PyDict::new(self.py), key: None, variant: None })
    }

    fn serialize_struct(self, _: &'static str, count: usize) -> Result<Fields<'py>, Failure> {
        self.serialize_map(Some(count))
    }

    fn serialize_struct_variant(self, _: &'static str, _: u32, variant: &'static str, _: usize) -> Result<Fields<'py>, Failure> {
        Ok(Fields { to: self, dict: PyDict::new(self.py), key: None, variant: Some(variant) })
    }
}

/// A list that grows.
struct Values<'py> {
    to: Objects<'py>,
    list: Bound<'py, PyList>,
    variant: Option<&'static str>,
}

impl<'py> Values<'py> {
    fn add<T: Serialize + ?Sized>(&mut self, v: &T) -> Result<(), Failure> {
        Ok(self.list.append(v.serialize(self.to.inside())?)?)
    }

    fn made(self) -> Made<'py> {
        match self.variant {
            Some(variant) => self.to.variant(variant, self.list.into_any()),
            None => Ok(self.list.into_any()),
        }
    }
}

macro_rules! values {
    ($($which:ident: $add:ident),*) => {
        $(impl<'py> ser::$which for Values<'py> {
            type Ok = Object<'py>;
            type Error = Failure;

            fn $add<T: Serialize + ?Sized>(&mut self, v: &T) -> Result<(), Failure> {
                self.add(v)
            }

            fn end(self) -> Made<'py> {
                self.made()
            }
        })*
    };
}

values!(
    SerializeSeq: serialize_element,
    SerializeTuple: serialize_element,
    SerializeTupleStruct: serialize_field,
    SerializeTupleVariant: serialize_field
);

/// A dict that grows.
struct Fields<'py> {
    to: Objects<'py>,
    dict: Bound<'py, PyDict>,
    key: Option<Bound<'py, PyString>>,
    variant: Option<&'static str>,
}

impl<'py> Fields<'py> {
    fn set<T: Serialize + ?Sized>(&mut self, field: &'static str, v: &T) -> Result<(), Failure> {
        let value = match self.to.text {
            Some(text) if text == field => PyBytes::new(self.to.py, &serde_json::to_vec(v).map_err(crate::refused)?).into_any(),
            _ => v.serialize(self.to.inside())?,
        };
        Ok(self.dict.set_item(name(self.to.py, field), value)?)
    }

    fn made(self) -> Made<'py> {
        match self.variant {
            Some(variant) => self.to.variant(variant, self.dict.into_any()),
            None => Ok(self.dict.into_any()),
        }
    }
}

impl<'py> ser::SerializeMap for Fields<'py> {
    type Ok = Object<'py>;
    type Error = Failure;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Failure> {
        self.key = Some(key.serialize(self.to.inside())?.str()?); // a number as its digits, as in JSON
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, v: &T) -> Result<(), Failure> {
        let value = v.serialize(self.to.inside())?;
        Ok(self.dict.set_item(self.key.take(), value)?)
    }

    fn end(self) -> Made<'py> {
        self.made()
    }
}

macro_rules! fields {
    ($($which:ident),*) => {
        $(impl<'py> ser::$which for Fields<'py> {
            type Ok = Object<'py>;
            type Error = Failure;

            fn serialize_field<T: Serialize + ?Sized>(&mut self, field: &'static str, v: &T) -> Result<(), Failure> {
                self.set(field, v)
            }

            fn end(self) -> Made<'py> {
                self.made()
            }
        })*
    };
}

fields!(SerializeStruct, SerializeStructVariant);
