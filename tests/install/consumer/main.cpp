// Links against the installed library and asks it something.
#include <cstdio>
#include <mxjit/mxjit.hpp>
#include <string>

int main() {
  std::printf("mxjit %s\n", std::string(mxjit::version()).c_str());
  return mxjit::version().empty() ? 1 : 0;
}
