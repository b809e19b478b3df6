// wirecall: a character type has no JSON form; use std::string
#include "wirecall/reflect.hpp"

struct Grade {
  char letter;
};
auto misuse() { return wirecall::from_json<Grade>("{}"); }
