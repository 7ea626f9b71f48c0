// Numbers in TF32: the eight bits of the exponent of single precision, and 11 bits of the significand.
//
// A number in single precision has 24 bits. It is the sum of a high part, the nearest number in TF32, and a
// low part, which has at most 12 bits. The tensor cores drop the last of these.

// Columns of B that a thread block multiplies, and rows of B in a chunk.
#define SPAN 128
#define DEPTH 32

// Rounds the bits of a number to those of the nearest number in TF32. The number must be finite,
// and the rounded one too.
__device__ __forceinline__ u32 round_to_tf32(const u32 bits) { return (bits + 0x1000u) & 0xffffe000u; }

// Returns the bits of the number in TF32 that is nearest to v. A number that rounding would make
// infinite is cut off instead.
__device__ __forceinline__ u32 nearest_tf32(const float v) {
    const u32 bits = __float_as_uint(v), rounded = round_to_tf32(bits);
    if ((rounded & 0x7f800000u) != 0x7f800000u) return rounded;
    return v == v ? bits & 0xffffe000u : 0x7fc00000u;
}
