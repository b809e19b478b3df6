// What the server offers, for programs in C++ that call it: nothing but declarations. Both sides include it, so the
// compiler checks each call, and nobody writes the name of a method.
#pragma once

#include <vector>

#include "wirecall/out.hpp"

namespace math {

double mean(const std::vector<double>& values);
/// Both come back: they are written when the answer comes.
void divide(int a, int b, wirecall::Out<int> quotient, wirecall::Out<int> remainder);
/// Sorts the values where they are: `values` is sent and comes back. How many of them differ.
int sort(std::vector<int>& values);

}  // namespace math

class Counter {
 public:
  int add(int amount);

 private:
  int value_ = 0;
};
