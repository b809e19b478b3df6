// wirecall: structs with base classes are not reflected
#include "wirecall/reflect.hpp"

struct Base {
  int id;
};
struct Derived : Base {
  int more;
};
auto misuse() { return wirecall::from_json<Derived>("{}"); }
