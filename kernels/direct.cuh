// Messages between GPUs that can write to each other's memory: each number is stored together with the number
// of its round, so that a reader sees when it has arrived, and no other signal is needed. Rounds count from
// 1. A place is used again two rounds later, when its reader has answered.
//
// Reference: the protocol LL of NCCL stores data and flags in the same way.

// A number on its way, in 8 bytes for each half of a double and for a float.
template <typename T>
struct Flagged;

template <>
struct Flagged<double> {
    u64 low, high;
    __device__ __forceinline__ void put(double value, u32 round) {
        const u64 bits = __double_as_longlong(value), flag = u64(round) << 32;
        asm volatile("st.volatile.global.v2.u64 [%0], {%1, %2};"
                     :: "l"(this), "l"(flag | (bits & 0xffffffffu)), "l"(flag | (bits >> 32)) : "memory");
    }
    __device__ __forceinline__ bool get(double& value, u32 round) const {
        u64 a, b;
        asm volatile("ld.volatile.global.v2.u64 {%0, %1}, [%2];" : "=l"(a), "=l"(b) : "l"(this) : "memory");
        value = __longlong_as_double((a & 0xffffffffu) | (b << 32));
        return u32(a >> 32) == round && u32(b >> 32) == round;
    }
};

template <>
struct Flagged<float> {
    u64 word;
    __device__ __forceinline__ void put(float value, u32 round) {
        asm volatile("st.volatile.global.u64 [%0], %1;"
                     :: "l"(this), "l"(u64(round) << 32 | __float_as_uint(value)) : "memory");
    }
    __device__ __forceinline__ bool get(float& value, u32 round) const {
        u64 a;
        asm volatile("ld.volatile.global.u64 %0, [%1];" : "=l"(a) : "l"(this) : "memory");
        value = __uint_as_float(u32(a));
        return u32(a >> 32) == round;
    }
};

// Waits for the number of a round. Returns 0 once the host has set `stop`, because another rank has failed.
template <typename T>
__device__ __forceinline__ T take(const Flagged<T>* at, u32 round, const u32* stop) {
    T value;
    u32 tries = 0;
    while (!at->get(value, round)) {
        if (++tries < 20000) continue;
        tries = 0;
        u32 stopped;
        asm volatile("ld.volatile.global.u32 %0, [%1];" : "=r"(stopped) : "l"(stop) : "memory");
        if (stopped) return T(0);
    }
    return value;
}
