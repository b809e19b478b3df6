// See functions.hpp. A file of its own, so that nobody compiles a function into its caller.
#include "typed/functions.hpp"

#include <charconv>
#include <cmath>
#include <numeric>
#include <random>

namespace typed {

std::uint64_t fibonacci(std::uint64_t n) { return n < 2 ? 1 : fibonacci(n - 1) + fibonacci(n - 2); }

std::string hash_complex(const ComplexObject& object) {
  std::string hash;
  hash.reserve(object.name.size() * 2);
  for (std::size_t i = 0; i < object.name.size(); ++i) {
    const std::size_t at = object.flag1 ? 11 - i % 12 : i % 12;
    const int value = object.flag2 ? object.name[i] + object.vals[at] : object.name[i] - object.vals[at];
    char digits[12];
    hash.append(digits, std::to_chars(digits, digits + sizeof digits, static_cast<unsigned>(value), 16).ptr);
  }
  return hash;
}

double std_dev(double n1, double n2, double n3, double n4, double n5, double n6, double n7, double n8, double n9,
               double n10) {
  const std::array all{n1, n2, n3, n4, n5, n6, n7, n8, n9, n10};
  return std::sqrt(std::inner_product(all.begin(), all.end(), all.begin(), 0.0) / 10);
}

double average_container(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

std::vector<std::uint64_t> gen_rand_ints(std::uint64_t min, std::uint64_t max, std::uint64_t count) {
  std::mt19937_64 random{1};
  std::vector<std::uint64_t> numbers(count);
  for (std::uint64_t& number : numbers) number = min + random() % (max - min + 1);
  return numbers;
}

}  // namespace typed
