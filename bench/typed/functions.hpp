// The functions of the typed benchmarks: what both ends of wirecall share, and what gRPC's service calls.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace typed {

struct ComplexObject {
  int id = 0;
  std::string name;
  bool flag1 = false;
  bool flag2 = false;
  std::array<std::uint8_t, 12> vals{};
};

/// By recursion: the work of a handler.
std::uint64_t fibonacci(std::uint64_t n);
/// Each letter of the name, more or less one of the values, as hexadecimal digits.
std::string hash_complex(const ComplexObject& object);
/// The root of the mean of the squares.
double std_dev(double n1, double n2, double n3, double n4, double n5, double n6, double n7, double n8, double n9,
               double n10);
double average_container(const std::vector<double>& values);
/// `count` numbers from `min` to `max`; always the same.
std::vector<std::uint64_t> gen_rand_ints(std::uint64_t min, std::uint64_t max, std::uint64_t count);

}  // namespace typed
