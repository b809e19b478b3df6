// Uses of the typed edge that must not compile, each below the message that a user is to see. misuse_test.cpp compiles
// this file and looks for all of them.
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "wirecall/reflect.hpp"
#include "wirecall/value.hpp"

// expect: wirecall: a character type has no JSON form; use std::string
struct Grade {
  char letter;
};
auto character() { return wirecall::from_json<Grade>("{}"); }

// expect: wirecall: this type cannot be put on the wire: it is no aggregate, container or number
class Secret {
 public:
  explicit Secret(int value) : value_(value) {}

 private:
  int value_;
};
auto not_aggregate() { return wirecall::to_json(Secret{1}); }

// expect: wirecall: structs with base classes are not reflected
struct Base {
  int id;
};
struct Derived : Base {
  int more;
};
auto base_class() { return wirecall::from_json<Derived>("{}"); }

// expect: wirecall: structs of more than 40 members are not reflected
struct Wide {
  int a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, a20, a21, a22, a23, a24,
      a25, a26, a27, a28, a29, a30, a31, a32, a33, a34, a35, a36, a37, a38, a39, a40, a41;
};
auto too_many_members() { return wirecall::from_json<Wide>("{}"); }

// expect: wirecall: from_json copies the text, so what T borrows would dangle
auto borrowing() { return wirecall::from_json<std::vector<std::string_view>>("[]"); }
auto borrowing_raw() { return wirecall::from_json<std::optional<wirecall::Raw>>("[]"); }

// expect: wirecall: a view has no room of its own to decode into
bool view(wirecall::Reader& reader, std::span<int>& out) { return wirecall::decode(reader, out); }

// expect: wirecall: Describe<T>::members names a member that T does not have
struct Point {
  int x;
};
template <>
struct wirecall::Describe<Point> {
  static constexpr wirecall::About members[] = {{.member = "z"}};
};
auto unknown_member() { return wirecall::from_json<Point>("{}"); }

// expect: wirecall: the keys of a map on the wire are strings, enums or integers
auto map_key() { return wirecall::from_json<std::map<std::pair<int, int>, int>>("{}"); }

// expect: wirecall: no enumerator between -128 and 255 was found; specialise wirecall::EnumNames
enum class Port { http = 8080 };
auto enum_out_of_range() { return wirecall::to_json(Port::http); }

// expect: wirecall: a struct with members that need an initialiser
struct Pair {
  int first;
  Secret second;
};
auto no_default() { return wirecall::to_json(Pair{1, Secret{2}}); }
