// wirecall: the keys of a map on the wire are strings, enums or integers
#include <map>

#include "wirecall/reflect.hpp"

auto misuse() { return wirecall::from_json<std::map<std::pair<int, int>, int>>("{}"); }
