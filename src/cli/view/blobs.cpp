// See blobs.hpp.
#include "cli/view/blobs.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>

#include "base/ascii.hpp"
#include "wirecall/codec.hpp"
#include "wirecall/error.hpp"
#include "wirecall/reflect.hpp"
#include "wirecall/value.hpp"

namespace wirecall::cli {

using namespace std::string_view_literals;

constexpr std::string_view kNpyMagic = "\x93NUMPY";
constexpr std::size_t kNpyHead = 10;  // magic, version, the header's size in two bytes

constexpr std::array kImageMagics{
    "\x89PNG\r\n\x1a\n"sv, "\xff\xd8\xff"sv, "GIF87a"sv, "GIF89a"sv, "II*\0"sv, "MM\0*"sv};

static bool is_image(std::string_view content) {
  if (std::ranges::any_of(kImageMagics, [&](std::string_view magic) { return content.starts_with(magic); }))
    return true;
  if (content.starts_with("RIFF") && content.substr(0, 12).ends_with("WEBP")) return true;
  // "BM" begins texts as well; a bitmap has its size behind it.
  std::uint32_t size = 0;
  if (!content.starts_with("BM") || content.size() < 6) return false;
  std::memcpy(&size, content.data() + 2, sizeof size);
  return size == content.size();
}

static std::vector<std::byte> bytes_of(std::string_view text) {
  std::vector<std::byte> bytes(text.size());
  std::ranges::transform(text, bytes.begin(), [](char c) { return static_cast<std::byte>(c); });
  return bytes;
}

static std::string text_of(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// What stands in the header of a .npy file behind a key: {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }
static std::string_view header_value(std::string_view header, std::string_view key, std::string_view end) {
  const std::size_t at = header.find(key);
  if (at == std::string_view::npos) return "?";
  const std::string_view rest = header.substr(at + key.size());
  return rest.substr(0, rest.find(end));
}

static std::string array_description(std::string_view npy) {
  const std::string_view header = npy.substr(std::min(kNpyHead, npy.size())).substr(0, 512);
  return std::string{"an array of "}
      .append(header_value(header, "'descr': '", "'"))
      .append(" (")
      .append(header_value(header, "'shape': (", ")"))
      .append(")");
}

static std::string_view image_suffix(std::string_view content) {
  if (content.starts_with("\xff\xd8")) return ".jpg";
  return content.starts_with("GIF") ? ".gif" : ".png";
}

std::string bytes_json(std::string_view bytes) { return Value{bytes_of(bytes)}.dump(); }

std::string json_of_content(std::string_view content) {
  if (content.starts_with(kNpyMagic)) return Value{Extension{kNpyExtension, bytes_of(content)}}.dump();
  if (is_image(content)) return Value{Extension{kImageExtension, bytes_of(content)}}.dump();
  if (Value::parse(content)) return std::string{trimmed(content)};
  try {
    return to_json(std::string{content});
  } catch (const Error&) {
    return bytes_json(content);
  }
}

std::optional<Blob> blob_of(std::string_view result_json) {
  if (!result_json.starts_with("{\"$")) return std::nullopt;
  const auto value = Value::parse(result_json);
  if (!value || !value->is_object() || value->as_object().size() != 1) return std::nullopt;
  try {
    if (value->find("$bytes") != nullptr) return Blob{text_of(value->as_bytes()), "bytes", ".bin"};
    if (value->find("$npy") == nullptr && value->find("$image") == nullptr) return std::nullopt;
    const Extension extension = value->as_extension();
    std::string content = text_of(extension.data);
    if (extension.type == kNpyExtension) {
      std::string description = array_description(content);
      return Blob{std::move(content), std::move(description), ".npy"};
    }
    const std::string_view suffix = image_suffix(content);
    return Blob{std::move(content), "an image", suffix};
  } catch (const std::exception&) {
    return std::nullopt;  // no base64 after all
  }
}

}  // namespace wirecall::cli
