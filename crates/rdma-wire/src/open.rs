//! Enumerations that keep the values they do not know.

/// Declares an enumeration of the wire as a newtype with constants.
///
/// A value from outside is never rejected and never panics: one without a name stays what it is
/// and prints in hex. The storage is `u8`, or a big-endian integer of this crate, given as
/// `Be16 as u16`. The crate that declares one needs `bytemuck` among its dependencies.
///
/// What is made: the newtype (`Pod`, ordered, hashable), a constant for each value, `new`, `get`,
/// `name`, `VALUES`, `Debug` and `Display` (the label, or hex).
///
/// ```
/// use rdma_wire::{Be16, open_enum};
///
/// open_enum! {
///     /// The attribute that a MAD is about.
///     pub struct AttributeId: Be16 as u16 {
///         /// Who a node is.
///         NODE_INFO = 0x0011 => "NodeInfo",
///         PORT_INFO = 0x0015,
///     }
/// }
///
/// assert_eq!(AttributeId::NODE_INFO.to_string(), "NodeInfo");
/// assert_eq!(AttributeId::PORT_INFO.to_string(), "PORT_INFO");
/// assert_eq!(AttributeId::new(0xff90).to_string(), "0xff90");
/// assert_eq!(format!("{:?}", AttributeId::new(0xff90)), "AttributeId(0xff90)");
/// assert_eq!(AttributeId::new(0x11).name(), Some("NodeInfo"));
/// assert_eq!(AttributeId::VALUES.len(), 2);
/// ```
#[macro_export]
macro_rules! open_enum {
    // One byte: the number itself is stored.
    ($(#[$meta:meta])* $vis:vis struct $name:ident: u8 { $($body:tt)* }) => {
        $crate::__open_enum_type! { $(#[$meta])* $vis $name, u8, u8 }

        impl $name {
            /// Takes the number as it stands on the wire.
            #[must_use]
            pub const fn new(value: u8) -> Self {
                Self(value)
            }

            /// The number.
            #[must_use]
            pub const fn get(self) -> u8 {
                self.0
            }
        }

        $crate::__open_enum_values! { $name, u8, $($body)* }
    };
    // Several bytes: a big-endian integer is stored.
    ($(#[$meta:meta])* $vis:vis struct $name:ident: $be:ident as $int:ty { $($body:tt)* }) => {
        $crate::__open_enum_type! { $(#[$meta])* $vis $name, $be, $int }

        impl $name {
            /// Puts the number into wire order.
            #[must_use]
            pub const fn new(value: $int) -> Self {
                Self($be::new(value))
            }

            /// The number.
            #[must_use]
            pub const fn get(self) -> $int {
                self.0.get()
            }
        }

        $crate::__open_enum_values! { $name, $int, $($body)* }
    };
}

/// Part of [`open_enum!`]: the newtype and what does not depend on its values.
#[doc(hidden)]
#[macro_export]
macro_rules! __open_enum_type {
    ($(#[$meta:meta])* $vis:vis $name:ident, $store:ty, $int:ty) => {
        $(#[$meta])*
        ///
        /// An open enumeration: a value without a name is kept, and prints in hex.
        #[derive(
            Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash,
            ::bytemuck::Pod, ::bytemuck::Zeroable,
        )]
        #[repr(transparent)]
        $vis struct $name(pub $store);

        impl ::core::fmt::Debug for $name {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                match self.name() {
                    Some(name) => f.write_str(name),
                    None => ::core::write!(f, "{}({:#x})", ::core::stringify!($name), self.get()),
                }
            }
        }

        impl ::core::fmt::Display for $name {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                match self.name() {
                    Some(name) => f.pad(name),
                    None => ::core::write!(f, "{:#x}", self.get()),
                }
            }
        }

        impl ::core::convert::From<$int> for $name {
            fn from(value: $int) -> Self {
                Self::new(value)
            }
        }

        impl ::core::convert::From<$name> for $int {
            fn from(value: $name) -> Self {
                value.get()
            }
        }
    };
}

/// Part of [`open_enum!`]: the named values.
#[doc(hidden)]
#[macro_export]
macro_rules! __open_enum_values {
    (@label $label:literal $konst:ident) => { $label };
    (@label $konst:ident) => { ::core::stringify!($konst) };
    ($name:ident, $int:ty,
        $($(#[$meta:meta])* $konst:ident = $value:literal $(=> $label:literal)?),* $(,)?
    ) => {
        impl $name {
            $(
                #[doc = ::core::concat!("`", ::core::stringify!($value), "`.")]
                ///
                $(#[$meta])*
                pub const $konst: Self = Self::new($value);
            )*

            /// Every value that has a name, in the order of their declaration.
            pub const VALUES: &'static [Self] = &[$(Self::$konst),*];

            /// The name of the value, if it has one.
            #[must_use]
            pub const fn name(self) -> Option<&'static str> {
                match self.get() {
                    $($value => Some($crate::__open_enum_values!(@label $($label)? $konst)),)*
                    _ => None,
                }
            }
        }
    };
}
