#include <string.h>

#include "base/base.h"

static uint32_t bits_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static float float_of(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

uint16_t cs_f32_to_f16(float value) {
  uint32_t bits = bits_of(value), sign = (bits >> 16) & 0x8000u, rest = bits & 0x7fffffffu;
  if (rest > 0x7f800000u) return (uint16_t)(sign | 0x7e00u);  /* NaN */
  if (rest >= 0x477ff000u) return (uint16_t)(sign | 0x7c00u); /* rounds past 65504, or infinity */
  if (rest < 0x33000001u) return (uint16_t)sign; /* at most half the smallest subnormal */
  uint32_t exponent = rest >> 23, mantissa = (rest & 0x7fffffu) | 0x800000u;
  uint32_t shift = exponent < 113 ? 126 - exponent : 13;
  uint32_t kept = mantissa >> shift, lost = mantissa & ((1u << shift) - 1),
           half = 1u << (shift - 1);
  if (exponent >= 113) kept += (exponent - 113) << 10; /* the implicit bit adds the last 1 << 10 */
  if (lost > half || (lost == half && (kept & 1))) kept++;
  return (uint16_t)(sign | kept);
}

float cs_f16_to_f32(uint16_t half) {
  uint32_t sign = (uint32_t)(half & 0x8000u) << 16, exponent = (half >> 10) & 0x1fu;
  uint32_t mantissa = half & 0x3ffu;
  if (exponent == 31) return float_of(sign | 0x7f800000u | (mantissa << 13));
  if (exponent == 0) {
    float magnitude = (float)mantissa * 0x1p-24f;
    return sign ? -magnitude : magnitude;
  }
  return float_of(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

uint16_t cs_f32_to_bf16(float value) {
  uint32_t bits = bits_of(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return (uint16_t)((bits >> 16) | 0x40u);
  return (uint16_t)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

float cs_bf16_to_f32(uint16_t bits) {
  return float_of((uint32_t)bits << 16);
}
