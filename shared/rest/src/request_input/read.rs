//! The serde deserializer of a [`RequestInput`]. The deserializer checks the JSON type of each value itself, so that errors
//! contain the texts of this crate and not those of serde.

use serde::de::value::{SeqDeserializer, StringDeserializer};
use serde::de::{DeserializeSeed, Deserializer, Error as _, IntoDeserializer, MapAccess, Visitor};
use serde::forward_to_deserialize_any;

use super::{InvalidInput, RequestInput};

/// The error text for a number that does not fit into an `i64`.
const NUMBER_TOO_LARGE_MESSAGE: &str = "must be a whole number of at most 18 digits";

/// Defines the methods that read integers. Each method reads an `i64`; serde then checks that the number is in the
/// range of the requested integer type.
macro_rules! whole_numbers {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, InvalidInput> {
            let RequestInput::Number(number) = &self else { return Err(self.wrong_type_error("a whole number")) };
            match (number.as_i64(), number.as_f64()) {
                (Some(number), _) => visitor.visit_i64(number),
                (None, Some(size)) if size.abs() >= 1e18 => Err(InvalidInput::custom(NUMBER_TOO_LARGE_MESSAGE)),
                _ => Err(self.wrong_type_error("a whole number")),
            }
        }
    )*};
}

impl<'de> Deserializer<'de> for RequestInput {
    type Error = InvalidInput;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, InvalidInput> {
        match self {
            RequestInput::Null => visitor.visit_unit(),
            RequestInput::Bool(value) => visitor.visit_bool(value),
            RequestInput::Number(number) => match (number.as_i64(), number.as_f64()) {
                (Some(number), _) => visitor.visit_i64(number),
                (None, size) => visitor.visit_f64(size.unwrap_or(f64::INFINITY)),
            },
            RequestInput::Text(text) => visitor.visit_string(text),
            RequestInput::List(_) => Err(InvalidInput::custom("must not be a list")),
            RequestInput::Object(fields) => visitor.visit_map(ObjectFields { rest: fields.into_iter(), field: None }),
        }
    }

    whole_numbers!(deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64);
    whole_numbers!(deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64);

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, InvalidInput> {
        let RequestInput::Bool(value) = self else { return Err(self.wrong_type_error("true or false")) };
        visitor.visit_bool(value)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, InvalidInput> {
        let RequestInput::Text(text) = self else { return Err(self.wrong_type_error("text")) };
        visitor.visit_string(text)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, InvalidInput> {
        self.deserialize_str(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, InvalidInput> {
        match self {
            RequestInput::Null => visitor.visit_none(),
            present => visitor.visit_some(present),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, InvalidInput> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, InvalidInput> {
        let RequestInput::List(items) = self else { return Err(self.wrong_type_error("a list")) };
        visitor.visit_seq(SeqDeserializer::new(items.into_iter()))
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, InvalidInput> {
        let RequestInput::Object(fields) = self else { return Err(self.wrong_type_error("an object")) };
        visitor.visit_map(ObjectFields { rest: fields.into_iter(), field: None })
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, InvalidInput> {
        self.deserialize_map(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, InvalidInput> {
        let RequestInput::Text(text) = self else { return Err(self.wrong_type_error("text")) };
        visitor.visit_enum(text.into_deserializer())
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, InvalidInput> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        i128 u128 f32 f64 char bytes byte_buf unit unit_struct tuple tuple_struct identifier
    }
}

impl<'de> IntoDeserializer<'de, InvalidInput> for RequestInput {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

/// The fields of an object, which serde reads one by one.
struct ObjectFields {
    /// The fields that serde has not read yet.
    rest: std::vec::IntoIter<(String, RequestInput)>,
    /// The field whose name serde has read and whose value it reads next; `None` before the first name and after each
    /// value.
    field: Option<(String, RequestInput)>,
}

impl<'de> MapAccess<'de> for ObjectFields {
    type Error = InvalidInput;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, InvalidInput> {
        self.field = self.rest.next();
        let Some((name, _)) = &self.field else { return Ok(None) };
        let name: StringDeserializer<InvalidInput> = name.clone().into_deserializer();
        seed.deserialize(name).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, InvalidInput> {
        let Some((name, value)) = self.field.take() else {
            return Err(InvalidInput::custom("has a value without a name"));
        };
        seed.deserialize(value).map_err(|invalid| invalid.in_field(&name))
    }
}
