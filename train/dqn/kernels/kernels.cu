// Kernels of operators.py, which says what each of them computes. For NVRTC, which has no headers here.
// Arrays are dense, rows first, and null where there is none. `size` threads work, no two of which write the same place.
typedef long long i64;
typedef unsigned long long u64;
struct bf16 { unsigned short bits; };
struct fp16 { unsigned short bits; };

__device__ inline unsigned thread() { return blockIdx.x * blockDim.x + threadIdx.x; }
__device__ inline float number(float x) { return x; }
__device__ inline float number(bf16 x) { return __uint_as_float((unsigned)x.bits << 16); }
__device__ inline void put(float* at, float x) { *at = x; }
__device__ inline void put(bf16* at, float x) {  // to the nearest, ties to even
  unsigned bits = __float_as_uint(x);
  at->bits = x != x ? 0x7FFF : (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
}

__device__ inline void put(fp16* at, float x) { at->bits = x != 0 ? 0x3C00 : 0; }  // knows 0 and 1 alone

// A thread writes eight numbers at once; a bit below 0 is none.
template <class T>
__device__ void views(unsigned size, const u64* words, const int* bit_of, T* out, int width, int count) {
  struct alignas(16) Eight { T of[8]; } eight;
  unsigned k = thread();
  if (k >= size) return;
  const u64* row = words + (i64)(k / (width / 8)) * count;
  const int* bits = bit_of + 8 * (k % (width / 8));
  for (int j = 0; j < 8; ++j) put(eight.of + j, bits[j] < 0 ? 0 : row[bits[j] >> 6] >> (bits[j] & 63) & 1);
  ((Eight*)out)[k] = eight;
}

// A thread has one column of all parts of an observation.
template <class T, class O>
__device__ void mix(
    unsigned size, const T* __restrict__ own, const T* bias, const T* of_mean, O* __restrict__ out, T* mean, int parts,
    int width) {
  unsigned k = thread();
  if (k >= size) return;
  float more = number(bias[k % width]) + (of_mean ? number(of_mean[k]) : 0), sum = 0;
#pragma unroll 4
  for (int part = 0; part < parts; ++part) {
    i64 at = (i64)(k / width * parts + part) * width + k % width;
    float x = number(own[at]) + more;
    x = x < 0 ? 0 : x;
    put(out + at, x);
    sum += x;
  }
  if (mean) put(mean + k, sum / parts);
}

template <class T, class O>
__device__ void unmix(
    unsigned size, const O* __restrict__ of_out, const T* of_mean, const O* __restrict__ out, T* __restrict__ of_own,
    T* total, int parts, int width) {
  unsigned k = thread();
  if (k >= size) return;
  float more = of_mean ? number(of_mean[k]) / parts : 0, sum = 0;
#pragma unroll 4
  for (int part = 0; part < parts; ++part) {
    i64 at = (i64)(k / width * parts + part) * width + k % width;
    float x = number(out[at]) <= 0 ? 0 : number(of_out[at]) + more;
    put(of_own + at, x);
    sum += x;
  }
  put(total + k, sum);
}

#define VIEWS(T)                                                                                                        \
  __global__ void views_##T(unsigned size, const u64* words, const int* bit_of, T* out, int width, int count) {         \
    views(size, words, bit_of, out, width, count);                                                                      \
  }
#define MIX(T, O)                                                                                                       \
  __global__ void mix_##T##_##O(                                                                                        \
      unsigned size, const T* own, const T* bias, const T* of_mean, O* out, T* mean, int parts, int width) {            \
    mix(size, own, bias, of_mean, out, mean, parts, width);                                                             \
  }                                                                                                                     \
  __global__ void unmix_##T##_##O(                                                                                      \
      unsigned size, const O* of_out, const T* of_mean, const O* out, T* of_own, T* total, int parts, int width) {      \
    unmix(size, of_out, of_mean, out, of_own, total, parts, width);                                                     \
  }
extern "C" {
VIEWS(float) VIEWS(bf16) VIEWS(fp16)
MIX(float, float) MIX(bf16, bf16) MIX(bf16, float)

// A thread has one word of a row.
__global__ void rows(
    unsigned size, const i64* index, const u64* observation, const u64* legal, const unsigned char* action,
    const float* n_step_return, const float* discount, const int* successor, u64* own_observation,
    unsigned char* own_action, float* own_return, float* own_discount, u64* next_observation, u64* next_legal,
    int capacity, int words) {
  unsigned k = thread();
  if (k >= size) return;
  unsigned row = k / words, word = k % words;
  i64 at = index[row], distance = successor[at];
  i64 then = at + distance < capacity ? at + distance : at + distance - capacity;
  own_observation[k] = observation[at * words + word];
  next_observation[k] = distance ? observation[then * words + word] : 0;
  if (word) return;
  own_action[row] = action[at];
  own_return[row] = n_step_return[at];
  own_discount[row] = discount[at];
  next_legal[row] = distance ? legal[then] : 0;
}

// A thread has a row. As in torch's argmax, what is no number is the greatest.
__global__ void td_target(
    unsigned size, const float* values, const float* choosing, const u64* legal, const float* n_step_return,
    const float* discount, float* target, int actions) {
  unsigned row = thread();
  if (row >= size) return;
  float greatest = -__uint_as_float(0x7F800000);
  int best = 0;
  for (u64 left = legal[row]; left; left &= left - 1) {
    int action = __ffsll(left) - 1;
    float value = choosing[(i64)row * actions + action];
    if (value > greatest || (value != value && greatest == greatest)) greatest = value, best = action;
  }
  float weight = discount[row], next = values[(i64)row * actions + best];
  target[row] = n_step_return[row] + (weight > 0 ? weight * next : 0);
}

// A thread has a row. What is no number, or minus infinity, is the least number.
__global__ void choose(
    unsigned size, const float* values, const u64* legal, const signed char* drawn, unsigned char* chosen, int actions) {
  unsigned row = thread();
  if (row >= size) return;
  const float* own = values + (i64)row * actions;
  const float least = -3.402823466e38f;
  float greatest = 0;
  int best = 0;
  for (u64 left = legal[row]; left; left &= left - 1) {
    int action = __ffsll(left) - 1;
    float value = own[action] > least ? own[action] : least;
    if (left == legal[row] || value > greatest) greatest = value, best = action;
  }
  int action = drawn[row] < 0 ? best : drawn[row];
  chosen[row] = own[action] < own[best] ? action | 0x80 : action;
}

// A thread has an action of a row; that of the one that was taken has the loss. Its means are over `rows`.
__global__ void td_loss(
    unsigned size, const float* values, const unsigned char* action, const float* target, const float* weight,
    float* loss, float* td_error, float* of_values, float* sums, int actions, int rows, int huber) {
  unsigned k = thread(), row = k / actions;
  if (k >= size) return;
  of_values[k] = 0;
  if (k % actions != action[row]) return;
  float value = values[k], error = value - target[row], distance = fabsf(error), share = weight ? weight[row] : 1;
  bool linear = huber && distance >= 1;
  float own = share * (linear ? distance - 0.5f : huber ? 0.5f * error * error : error * error);
  of_values[k] = share * (linear ? (error > 0 ? 1 : -1) : huber ? error : 2 * error) / rows;
  loss[row] = own;
  td_error[row] = error;
  sums[row] += own;
  sums[rows + row] += value;
  sums[2 * rows + row] += distance;
}

// A thread has a weight.
__global__ void adam(
    unsigned size, float* weights, const float* gradient, float* mean, float* square, float* target, float* average,
    const float* norm, const float* lr, const float* steps, const i64* updates, float* norms, float clip, float tau,
    int interval, float least) {
  unsigned k = thread();
  if (k >= size) return;
  const float log_beta1 = -0.105360515657826f, log_beta2 = -0.00100050033358353f;
  float length = *norm, share = clip / (length + 1e-6f), g = gradient[k] * (share > 1 ? 1 : share);
  float m = mean[k] = 0.9f * mean[k] + 0.1f * g, v = square[k] = 0.999f * square[k] + 0.001f * g * g;
  float corrected = sqrtf(v) / sqrtf(-expm1f(*steps * log_beta2)) + 1e-8f;
  float w = weights[k] = weights[k] + *lr / expm1f(*steps * log_beta1) * m / corrected;
  if (tau > 0) target[k] += tau * (w - target[k]);
  else if (*updates % interval == 0) target[k] = w;
  if (average) average[k] += fmaxf(1.0f / (*updates + 1), least) * (w - average[k]);
  if (k == 0) *norms += length;
}
}
