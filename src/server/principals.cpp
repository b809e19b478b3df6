// Where Options have the principals of a server from (wirecall/options.hpp).
#include "server/principals.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <iterator>
#include <stdexcept>

#include "base/printable.hpp"
#include "codec/json_scan.hpp"
#include "rpc/access.hpp"
#include "wirecall/value.hpp"

namespace wirecall {
namespace {

using List = std::pair<std::string_view, std::vector<std::string> Principal::*>;
constexpr List kLists[]{{"tokens", &Principal::tokens},   {"certificates", &Principal::certificates},
                        {"call", &Principal::call},       {"provide", &Principal::provide},
                        {"publish", &Principal::publish}, {"subscribe", &Principal::subscribe}};

// Reads the file's text. What it says of faults names locations, and no value: that may be a token.
class PrincipalsText {
 public:
  explicit PrincipalsText(const std::string& path) : path_(path) {}

  [[nodiscard]] std::vector<Principal> read(const std::string& json) const {
    const auto parsed = Value::parse(json);
    if (!parsed) refuse("is no JSON" + location_of_fault(json));
    if (!parsed->is_array()) refuse("holds no array of principals");
    if (parsed->as_array().empty()) refuse("holds an empty array: nobody could say who he is");
    std::vector<Principal> principals;
    for (const Value& one : parsed->as_array()) principals.push_back(principal(one, principals.size()));
    return principals;
  }

 private:
  // Where no JSON text can go on as this one does.
  [[nodiscard]] static std::string location_of_fault(const std::string& json) {
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
    const std::string location = "principal " + std::to_string(index + 1);
    if (!value.is_object()) refuse(location + " is no object");
    Principal result;
    for (const auto& [key, member] : value.as_object()) {
      if (key == "name") {
        if (!member.is_string()) refuse(location + ": name is no text");
        result.name = member.as_string();
      } else if (const auto* const list = std::ranges::find(kLists, key, &List::first); list != std::end(kLists)) {
        result.*list->second = texts_of(member, location + ": " + key);
      } else if (key == "admin") {
        if (!member.is_bool()) refuse(location + ": admin is neither true nor false");
        result.admin = member.as_bool();
      } else {
        refuse(location + ": " + printable(key.substr(0, 64)) +
               " is none of name, tokens, certificates, call, provide, publish, subscribe and admin");
      }
    }
    if (result.name.empty()) refuse(location + " has no name");
    return result;
  }

  [[nodiscard]] std::vector<std::string> texts_of(const Value& value, const std::string& location) const {
    std::vector<std::string> texts;
    if (!value.is_array()) refuse(location + " is no array of texts");
    for (const Value& text : value.as_array()) {
      if (!text.is_string()) refuse(location + " is no array of texts");
      texts.emplace_back(text.as_string());
    }
    return texts;
  }

  [[noreturn]] void refuse(const std::string& why) const {
    throw std::invalid_argument("principals_file: " + path_ + ": " + why);
  }

  const std::string& path_;
};

std::string content_of(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file{std::fopen(path.c_str(), "rbe"), &std::fclose};
  std::string content;
  if (file != nullptr) {
    char block[16 * 1024];
    while (const std::size_t bytes = std::fread(block, 1, sizeof block, file.get())) content.append(block, bytes);
    if (std::ferror(file.get()) == 0) return content;
  }
  throw std::invalid_argument("principals_file: " + path + " cannot be read: " + std::strerror(errno));
}

// Throws what a server would refuse them with, naming the file where it is not the options alone that are wrong.
void check_together(const std::vector<Principal>& own, const std::vector<Principal>& all, const std::string& path) {
  static_cast<void>(rpc::Authority{own});
  try {
    static_cast<void>(rpc::Authority{all});
  } catch (const std::invalid_argument& error) {
    constexpr std::string_view kOption = "principals: ";
    std::string_view why = error.what();
    if (why.starts_with(kOption)) why.remove_prefix(kOption.size());
    throw std::invalid_argument("principals_file: " + path + ": " + std::string{why});
  }
}

}  // namespace

std::vector<Principal> principals_of(const Options& options) {
  std::vector<Principal> principals = options.principals;
  const std::string& path = options.principals_file;
  if (path.empty()) return principals;
  for (Principal& one : PrincipalsText{path}.read(content_of(path))) principals.push_back(std::move(one));
  check_together(options.principals, principals, path);
  return principals;
}

}  // namespace wirecall
