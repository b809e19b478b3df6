// ReplyTemplate: a text or JSON value with placeholders that a call's params fill, as `wirecall reply` answers with.
// Pure.
//
//     Hello, {name}!          a string; {name} is the param of that name
//     {0} and {1}, {} and {}  params by position; each {} is the next one
//     {{                      a brace; so is }}
//     {"sum":"{total}"}       what is JSON is that value, with the strings in it filled in
//
// Within other text a param that is a string is its text, any other its JSON. A string that is nothing but one
// placeholder is the param itself, whatever it is. Names are positions as well, in the order in which they first
// appear, so that callers may give params either way.
#pragma once

#include <cstddef>
#include <expected>
#include <vector>

#include "wirecall/error.hpp"

namespace wirecall {
class Value;
}

namespace wirecall::cli {

class ReplyTemplate {
 public:
  /// So many params at most.
  static constexpr std::size_t kParamsMax = 12;

  /// Errors are texts for the user.
  [[nodiscard]] static std::expected<ReplyTemplate, std::string> parse(std::string_view text);

  /// The params that it uses, in order; where it has them by position, they are arg0, arg1 and so on.
  [[nodiscard]] const std::vector<std::string>& names() const noexcept { return names_; }
  /// The JSON text for a call with these params, which are JSON text or empty; or -32602 for one that is not there.
  /// Params that it does not use make no difference.
  [[nodiscard]] std::expected<std::string, Error> fill(std::string_view params) const;

 private:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  /// JSON text, and the param behind it.
  struct Piece {
    std::string json;
    std::size_t param = kNone;  ///< its position
    bool in_text = false;       ///< it stands within a string
  };

  [[nodiscard]] std::expected<void, std::string> add(const Value& value);
  [[nodiscard]] std::expected<void, std::string> add_string(std::string_view text);
  [[nodiscard]] std::expected<std::size_t, std::string> param_of(std::string_view placeholder);
  void add_json(std::string_view json);

  std::vector<Piece> pieces_;
  std::vector<std::string> names_;
  bool by_name_ = false;
  bool by_position_ = false;
  std::size_t next_ = 0;  ///< the position that {} means
};

}  // namespace wirecall::cli
