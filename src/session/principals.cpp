// Where Options have the principals of a server from (wirecall/options.hpp).
#include <cstddef>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "wirecall/options.hpp"
#include "wirecall/value.hpp"

namespace wirecall {
namespace {

// Reads the file's text. What it says of faults names places, and no value: that may be a token.
class PrincipalsText {
 public:
  explicit PrincipalsText(const std::string& path) : path_(path) {}

  [[nodiscard]] std::vector<Principal> read(const std::string& json) const {
    const auto parsed = Value::parse(json);
    if (!parsed) refuse("is no JSON");
    if (!parsed->is_array() || parsed->as_array().empty()) refuse("holds no array of principals");
    std::vector<Principal> principals;
    for (const Value& one : parsed->as_array()) principals.push_back(principal(one, principals.size()));
    return principals;
  }

 private:
  [[nodiscard]] Principal principal(const Value& value, std::size_t index) const {
    const std::string place = "principal " + std::to_string(index + 1);
    if (!value.is_object()) refuse(place + " is no object");
    Principal result;
    for (const auto& [key, member] : value.as_object()) {
      const auto texts = [&] { return texts_of(member, place + ": " + key); };
      if (key == "name") {
        if (!member.is_string()) refuse(place + ": name is no text");
        result.name = member.as_string();
      } else if (key == "tokens") {
        result.tokens = texts();
      } else if (key == "call") {
        result.call = texts();
      } else if (key == "provide") {
        result.provide = texts();
      } else if (key == "publish") {
        result.publish = texts();
      } else if (key == "subscribe") {
        result.subscribe = texts();
      } else if (key == "admin") {
        if (!member.is_bool()) refuse(place + ": admin is neither true nor false");
        result.admin = member.as_bool();
      } else {
        refuse(place + " has a member that is none of name, tokens, call, provide, publish, subscribe and admin");
      }
    }
    if (result.name.empty()) refuse(place + " has no name");
    return result;
  }

  [[nodiscard]] std::vector<std::string> texts_of(const Value& value, const std::string& place) const {
    std::vector<std::string> texts;
    if (!value.is_array()) refuse(place + " is no array of texts");
    for (const Value& text : value.as_array()) {
      if (!text.is_string()) refuse(place + " is no array of texts");
      texts.emplace_back(text.as_string());
    }
    return texts;
  }

  [[noreturn]] void refuse(const std::string& why) const {
    throw std::invalid_argument("principals_file: " + path_ + ": " + why);
  }

  const std::string& path_;
};

}  // namespace

std::vector<Principal> principals_of(const Options& options) {
  std::vector<Principal> principals = options.principals;
  const std::string& path = options.principals_file;
  if (path.empty()) return principals;
  std::ifstream file{path};
  std::ostringstream text;
  if (file) text << file.rdbuf();
  if (!file) throw std::invalid_argument("principals_file: " + path + " cannot be read");
  for (Principal& one : PrincipalsText{path}.read(text.str())) principals.push_back(std::move(one));
  return principals;
}

}  // namespace wirecall
