//! Parameters of kernels: names and types, from which the parameter list in CUDA C++ is made.

use super::slots::SlotPointers;
use crate::scalar::Scalar;
use std::fmt::{self, Display, Formatter, Write};

/// A type that has the same layout in CUDA C++.
///
/// # Safety
/// The type of that name in kernels/common.cuh or in CUDA C++ has the same size and the same fields in the
/// same order, and no alignment above 16 bytes.
pub(crate) unsafe trait InKernels: Copy {
    /// The type's name in CUDA C++.
    const NAME: &'static str;
}

macro_rules! in_kernels {
    ($($rust:ty => $cuda:literal),*) => {
        // SAFETY: number types of the same width, and CUDA's vectors of them.
        $(unsafe impl InKernels for $rust { const NAME: &'static str = $cuda; })*
    };
}
in_kernels!(
    u16 => "u16", i16 => "short", i32 => "int", i64 => "long long", u32 => "u32", u64 => "u64", f32 => "float", f64 => "double",
    [u32; 4] => "uint4", [u64; 2] => "ulonglong2"
);

// SAFETY: `repr(C)` with the fields of `struct Slots`, six pointers.
unsafe impl InKernels for SlotPointers {
    const NAME: &'static str = "Slots";
}

/// The name of a parameter: a word, or a letter with a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Name {
    stem: &'static str,
    number: Option<usize>,
}

impl From<&'static str> for Name {
    fn from(stem: &'static str) -> Name {
        Name { stem, number: None }
    }
}

impl From<(&'static str, usize)> for Name {
    fn from((stem, number): (&'static str, usize)) -> Name {
        Name { stem, number: Some(number) }
    }
}

impl Display for Name {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.stem)?;
        self.number.map_or(Ok(()), |number| write!(f, "{number}"))
    }
}

/// How a kernel uses a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Access {
    /// Loads from memory that no kernel writes meanwhile. READ_ONLY, which kernels define,
    /// declares this to the compiler.
    ReadOnly,
    /// Loads from memory that the previous kernel may have written.
    Read,
    /// Loads from memory and stores to it.
    Write,
    /// Takes the value and not an address.
    Value,
}

/// A parameter of a kernel: its name, and its type in CUDA C++.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Parameter {
    name: Name,
    access: Access,
    /// The type of an element, or of the value.
    element: &'static str,
    /// The size of that type in bytes.
    size: usize,
}

impl Parameter {
    /// Makes the parameter for an array that kernels only read.
    pub(crate) fn array<E: InKernels>(name: impl Into<Name>) -> Parameter {
        Parameter { name: name.into(), access: Access::ReadOnly, element: E::NAME, size: size_of::<E>() }
    }

    /// Makes the parameter for an array that kernels read and write.
    pub(crate) fn scratch<E: InKernels>(name: impl Into<Name>) -> Parameter {
        Parameter { access: Access::Write, ..Parameter::array::<E>(name) }
    }

    /// Makes the parameter for an array of the type of the vectors that kernels read and write.
    pub(crate) fn scalars<T: Scalar>(name: impl Into<Name>) -> Parameter {
        Parameter { name: name.into(), access: Access::Write, element: T::CUDA_NAME, size: size_of::<T>() }
    }

    /// Makes the parameter for a vector that is only read.
    pub(crate) fn read<T: Scalar>(name: impl Into<Name>) -> Parameter {
        Parameter { access: Access::Read, ..Parameter::scalars::<T>(name) }
    }

    /// Makes the parameter for a vector that is written.
    pub(crate) fn written<T: Scalar>(name: impl Into<Name>) -> Parameter {
        Parameter::scalars::<T>(name)
    }

    /// Makes the parameter for a number or a structure, by value.
    pub(crate) fn value<V: InKernels>(name: impl Into<Name>) -> Parameter {
        Parameter { access: Access::Value, ..Parameter::array::<V>(name) }
    }

    /// Makes the parameter for a number of the type of the vectors, by value.
    pub(crate) fn scalar<T: Scalar>(name: impl Into<Name>) -> Parameter {
        Parameter { access: Access::Value, ..Parameter::scalars::<T>(name) }
    }

    /// Makes the parameter for `count` numbers in double precision by value, as `struct Numbers`.
    pub(crate) fn numbers(count: usize) -> Parameter {
        let size = count * size_of::<f64>();
        Parameter { name: "numbers".into(), access: Access::Value, element: "Numbers", size }
    }

    /// Returns the same parameter under another name.
    pub(crate) fn renamed(self, name: &'static str) -> Parameter {
        Parameter { name: name.into(), ..self }
    }

    /// Returns whether the parameter has this name.
    pub(crate) fn is_named(&self, name: &'static str) -> bool {
        self.name == name.into()
    }

    /// Returns the type of an element, or of the value, in CUDA C++.
    pub(crate) fn type_name(&self) -> &'static str {
        self.element
    }
}

impl Display for Parameter {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Parameter { name, access, element, .. } = self;
        match access {
            Access::ReadOnly => write!(f, "const {element}* READ_ONLY {name}"),
            Access::Read => write!(f, "const {element}* {name}"),
            Access::Write => write!(f, "{element}* {name}"),
            Access::Value => write!(f, "const {element} {name}"),
        }
    }
}

/// Returns the definition of the macro PARAMETERS, the parameter list of a kernel.
pub(super) fn declaration(parameters: &[Parameter]) -> String {
    let mut text = String::from("#define PARAMETERS ");
    for (index, parameter) in parameters.iter().enumerate() {
        let comma = if index > 0 { ", " } else { "" };
        let _ = write!(text, "{comma}{parameter}");
    }
    text.push('\n');
    text
}

/// Returns assertions that compare the sizes of the types in CUDA C++ with those in Rust.
pub(super) fn size_checks(parameters: &[Parameter]) -> String {
    let mut text = String::new();
    for (index, Parameter { element, size, .. }) in parameters.iter().enumerate() {
        if !parameters[..index].iter().any(|other| other.element == *element) {
            let _ = writeln!(text, "static_assert(sizeof({element}) == {size}, \"the size of {element}\");");
        }
    }
    text
}

/// Returns the first difference between the parameters of a kernel and those of arguments.
pub(super) fn difference<'a>(
    wanted: &[Parameter],
    given: impl Iterator<Item = &'a Parameter>,
) -> Option<String> {
    let (mut wanted, mut given) = (wanted.iter(), given);
    loop {
        match (wanted.next(), given.next()) {
            (None, None) => return None,
            (Some(wanted), Some(given)) if wanted == given => {}
            (Some(wanted), Some(given)) => return Some(format!("it takes {wanted}, but is given {given}")),
            (Some(wanted), None) => return Some(format!("it takes {wanted}, but gets no argument for it")),
            (None, Some(given)) => return Some(format!("it takes no {given}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn product<E: InKernels>() -> Vec<Parameter> {
        vec![
            Parameter::array::<E>("row_offsets"),
            Parameter::read::<f64>("x"),
            Parameter::written::<f64>("y"),
            Parameter::value::<u32>("count"),
            Parameter::scalar::<f64>("alpha"),
            Parameter::value::<SlotPointers>("slots"),
        ]
    }

    #[test]
    fn the_parameter_list_of_a_kernel_has_the_names_and_types_of_its_arguments() {
        assert_eq!(
            declaration(&product::<u32>()),
            "#define PARAMETERS const u32* READ_ONLY row_offsets, const double* x, double* y, const u32 count, \
             const double alpha, const Slots slots\n"
        );
        let swept = [Parameter::read::<f32>(("q", 3)), Parameter::numbers(4)];
        assert_eq!(declaration(&swept), "#define PARAMETERS const float* q3, const Numbers numbers\n");
    }

    #[test]
    fn another_type_of_an_array_changes_the_parameter_list() {
        assert_ne!(declaration(&product::<u32>()), declaration(&product::<u64>()));
    }

    #[test]
    fn arguments_of_another_type_name_order_or_number_are_refused() {
        let given = |given: &[Parameter]| difference(&product::<u32>(), given.iter());
        assert_eq!(given(&product::<u32>()), None);
        let text = given(&product::<u64>()).unwrap();
        assert!(text.contains("const u32*") && text.contains("const u64*"), "{text}");
        let mut swapped = product::<u32>();
        swapped.swap(1, 2);
        assert!(given(&swapped).is_some());
        let mut renamed = product::<u32>();
        renamed[0] = Parameter::array::<u32>("lengths");
        assert!(given(&renamed).unwrap().contains("lengths"));
        assert!(given(&product::<u32>()[..5]).unwrap().contains("no argument"));
        assert!(given(&[product::<u32>(), product::<u32>()].concat()).unwrap().contains("no const u32*"));
    }

    #[test]
    fn the_compiler_compares_each_type_once_with_its_size_in_rust() {
        let checks = size_checks(&product::<u32>());
        assert_eq!(checks.lines().count(), 3, "{checks}");
        assert!(checks.contains("sizeof(Slots) == 48"), "{checks}");
    }
}
