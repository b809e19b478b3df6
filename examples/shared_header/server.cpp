// Serves what math.hpp declares: math.mean, math.divide, math.sort, Counter.add. The endpoint is the argument, else
// tcp://127.0.0.1:8545; it is printed.
#include <algorithm>
#include <iostream>
#include <numeric>

#include "math.hpp"
#include "wirecall/wirecall.hpp"

namespace math {

double mean(const std::vector<double>& values) {
  if (values.empty()) throw wirecall::Error{"the mean of nothing"};
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

void divide(int a, int b, wirecall::Out<int> quotient, wirecall::Out<int> remainder) {
  if (b == 0) throw wirecall::Error{"division by zero"};
  quotient = a / b;
  remainder = a % b;
}

int sort(std::vector<int>& values) {
  std::ranges::sort(values);
  const auto repeated = std::ranges::count_if(
      values, [&](const int& value) { return &value != values.data() && value == *(&value - 1); });
  return static_cast<int>(values.size()) - static_cast<int>(repeated);
}

}  // namespace math

int Counter::add(int amount) { return value_ += amount; }

int main(int argc, char** argv) {
  wirecall::Server server;
  Counter counter;
  // The names of parameters are for callers by name, and for documents.
  server.method<math::mean>({"values"}).safe();
  server.method<math::divide>({"a", "b", "quotient", "remainder"});
  server.method<math::sort>({"values"});
  server.method<&Counter::add>(counter, {"amount"});
  std::cout << server.listen(argc > 1 ? argv[1] : "tcp://127.0.0.1:8545").uri() << std::endl;
  server.run();
}
