use super::Value;

/// The parameters of a statement: `()`, a tuple of up to 12 values, an array, or a `Vec<Value>`.
///
/// Their number must match exactly the highest index in the statement; named parameters (`:n`, `@n`, `$n`) bind
/// by position (rule F5).
pub trait Params {
    /// The values, in order.
    fn into_values(self) -> Vec<Value>;
}

impl Params for () {
    fn into_values(self) -> Vec<Value> {
        Vec::new()
    }
}

impl Params for Vec<Value> {
    fn into_values(self) -> Vec<Value> {
        self
    }
}

impl<T: Into<Value>, const N: usize> Params for [T; N] {
    fn into_values(self) -> Vec<Value> {
        self.into_iter().map(Into::into).collect()
    }
}

macro_rules! tuples {
    ($($($name:ident)+;)+) => {
        $(#[allow(non_snake_case)]
        impl<$($name: Into<Value>),+> Params for ($($name,)+) {
            fn into_values(self) -> Vec<Value> {
                let ($($name,)+) = self;
                vec![$($name.into()),+]
            }
        })+
    };
}

tuples! {
    A; A B; A B C; A B C D; A B C D E; A B C D E F; A B C D E F G; A B C D E F G H; A B C D E F G H I;
    A B C D E F G H I J; A B C D E F G H I J K; A B C D E F G H I J K L;
}
