// Blobs: arrays, images and bytes on the command line. Files become the values that stand for them in JSON
// (docs/wire.md "Values beyond JSON"), and a result that is one becomes a file again. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace wirecall::cli {

/// The JSON of what a file holds, by its content: a `.npy` array, an image, JSON as it is, other text as a string, and
/// anything else as bytes.
[[nodiscard]] std::string json_of_content(std::string_view content);
/// The JSON of bytes.
[[nodiscard]] std::string bytes_json(std::string_view bytes);

/// A result that is nothing but an array, an image or bytes.
struct Blob {
  std::string content;      ///< as a file has it
  std::string description;  ///< "an array of <f4 (2, 3)", "an image", "bytes"
  std::string_view suffix;  ///< of such a file: ".npy"
};
/// None for a result that is anything else.
[[nodiscard]] std::optional<Blob> blob_of(std::string_view result_json);

}  // namespace wirecall::cli
