// wirecall: Describe<T>::members names a member that T does not have
#include "wirecall/reflect.hpp"

struct Point {
  int x;
};
template <>
struct wirecall::Describe<Point> {
  static constexpr wirecall::About members[] = {{.member = "z"}};
};
auto misuse() { return wirecall::from_json<Point>("{}"); }
