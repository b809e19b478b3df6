// Where Options have the principals of a server from (wirecall/options.hpp).
#include "session/principals.hpp"

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <utility>
#include <vector>

#include "base/printable.hpp"
#include "codec/json_scan.hpp"
#include "wirecall/bytes.hpp"
#include "wirecall/limits.hpp"
#include "wirecall/log.hpp"
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
    if (!parsed) refuse("is no JSON" + place_of_fault(json));
    if (!parsed->is_array()) refuse("holds no array of principals");
    if (parsed->as_array().empty()) refuse("holds an empty array: nobody could say who he is");
    std::vector<Principal> principals;
    for (const Value& one : parsed->as_array()) principals.push_back(principal(one, principals.size()));
    return principals;
  }

 private:
  // Where no JSON text can go on as this one does.
  [[nodiscard]] static std::string place_of_fault(const std::string& json) {
    Buffer padded{json};
    const Scan scan = json::scan(padded.padded(), kDepthMax);
    const bool whole = scan.status == ScanStatus::complete;
    const std::string_view before =
        std::string_view{json}.substr(0, whole ? json.find_first_not_of(" \t\r\n", scan.offset) : scan.offset);
    const auto line = 1 + std::ranges::count(before, '\n');
    const std::size_t column = before.size() - (before.rfind('\n') + 1) + 1;
    return " from line " + std::to_string(line) + ", column " + std::to_string(column) + " on" +
           (scan.status == ScanStatus::incomplete ? ": it ends too early" : "");
  }

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
        refuse(place + ": " + printable(key.substr(0, 64)) +
               " is none of name, tokens, call, provide, publish, subscribe and admin");
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

void session::warn_of_open_principals_file(const Options& options) {
  constexpr mode_t kOpen = S_IROTH | S_IWOTH | S_IWGRP;
  struct stat status{};
  if (options.principals_file.empty() || ::stat(options.principals_file.c_str(), &status) != 0) return;
  if ((status.st_mode & kOpen) == 0) return;
  options.log(LogLevel::warning,
              "other users of this machine can read or change the principals_file, which holds tokens; chmod 600 keeps "
              "it to its owner",
              {{"file", options.principals_file}});
}

}  // namespace wirecall
