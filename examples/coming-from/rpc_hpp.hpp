// What rpc_hpp_server.cpp offers. Clients that include it have their calls checked by the compiler; others call by
// name.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

// Read and written by its members' names, without a word more.
struct Badge {
  int id = 0;
  std::string name;
  bool is_guest = false;
  std::array<std::uint8_t, 3> color{};
};

int sum(int a, int b);
std::uint64_t fibonacci(std::uint64_t n);
std::string label(const Badge& badge);
/// Multiplies each value where it is.
void scale(std::vector<double>& values, double factor);
