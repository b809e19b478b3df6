// Runs a fuzzer's body over the files of the folders given as arguments: libFuzzer's role where there is no libFuzzer.
// It makes no inputs of its own. Each file is handed over in a heap buffer of its exact size, so that a memory checker
// sees a read past its end.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

int main(int argc, char** argv) {
  std::size_t inputs = 0;
  for (int i = 1; i < argc; ++i) {
    if (!std::filesystem::is_directory(argv[i])) continue;  // a fuzzer without seeds starts from nothing
    for (const auto& entry : std::filesystem::recursive_directory_iterator{argv[i]}) {
      if (!entry.is_regular_file()) continue;
      std::ifstream file{entry.path(), std::ios::binary};
      const std::vector<char> content{std::istreambuf_iterator<char>{file}, {}};
      const auto exact = std::make_unique<std::uint8_t[]>(content.size());
      std::copy(content.begin(), content.end(), exact.get());
      LLVMFuzzerTestOneInput(exact.get(), content.size());
      ++inputs;
    }
  }
  LLVMFuzzerTestOneInput(nullptr, 0);
  std::printf("%zu inputs replayed\n", inputs);
}
