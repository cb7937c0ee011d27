// Functions of a library that is loaded on first use (dlopen) and stays loaded. Uses no fmt,
// because nvcc compiles this file too.
#pragma once

#include <dlfcn.h>

#include <string>
#include <utility>

namespace runtime {

class LoadedLibrary {
 public:
  // `name` appears in messages; `because` ends the sentence that reports a missing function.
  LoadedLibrary(std::string name, const char* file, std::string because = "")
      : name_(std::move(name)),
        because_(std::move(because)),
        handle_(dlopen(file, RTLD_NOW | RTLD_LOCAL)) {
    if (handle_ != nullptr) return;
    const char* const why = dlerror();
    missing_ = name_ + " cannot be loaded: " + (why == nullptr ? "for no reason given" : why);
  }

  // Sets `function` to null when the symbol is missing.
  template <class Function>
  void find(const char* symbol, Function& function) {
    function = handle_ == nullptr ? nullptr : reinterpret_cast<Function>(dlsym(handle_, symbol));
    if (function == nullptr && missing_.empty()) missing_ = name_ + " has no " + symbol + because_;
  }

  // The first thing missing, the library or one of its functions; "" when nothing is.
  const std::string& missing() const { return missing_; }

 private:
  std::string name_, because_, missing_;
  void* handle_;
};

}  // namespace runtime
