// wirecall: this type cannot be put on the wire: it is no aggregate, container or number
#include "wirecall/reflect.hpp"

class Secret {
 public:
  explicit Secret(int value) : value_(value) {}

 private:
  int value_;
};
auto misuse() { return wirecall::to_json(Secret{1}); }
