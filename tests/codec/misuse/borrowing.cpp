// wirecall: from_json copies the text, so what T borrows would dangle
#include "wirecall/reflect.hpp"

auto misuse() { return wirecall::from_json<std::vector<std::string_view>>("[]"); }
