// usage: in_module PATH
#include <wirecall/module.hpp>

int main(int, char** argv) {
  wirecall::Module math{argv[1]};
  return math.call<int>("math.add", 2, 3) == 5 ? 0 : 1;
}
