// Who owns the bytes: handles, views and copies over one storage, their use counts and versions.
#include <cstdio>

#include "taper/taper.h"

using namespace taper;

int failures = 0;

void fact(const char* text, bool holds) {
  std::printf("  %s  %s\n", holds ? "yes" : "NO!", text);
  failures += holds ? 0 : 1;
}

int main() {
  std::printf("A tensor is a handle (%zu bytes) to sizes and strides over a counted storage.\n\n",
              sizeof(Tensor));
  Tensor a = arange(12, kFloat32).reshape({3, 4});
  std::printf("a = arange(12).reshape({3, 4})\n%s\n", a.describe().c_str());

  const Tensor b = a;
  std::printf("\nb = a: another handle to the same tensor\n");
  fact("a and b are the same tensor", a.is_same(b));
  fact("two handles are counted", a.use_count() == 2);

  const Tensor row = a[1], columns = a.t();
  std::printf("\nrow = a[1], columns = a.t(): other tensors over the same storage\n%s\n",
              row.describe().c_str());
  fact("row is another tensor, in the same storage", !row.is_same(a) && row.is_alias_of(a));
  fact("it begins 4 elements in", row.storage_offset() == 4);
  fact("the transpose moved no byte", columns.data_ptr() == a.data_ptr());

  std::printf("\nrow.fill_(7): a write through one is seen by all, and counted\n");
  const auto before = a.version();
  row.fill_(7);
  fact("a[1][2] is 7", a[1][2].item<float>() == 7);
  fact("columns[2][1] is 7", columns[2][1].item<float>() == 7);
  fact("the version rose by one, for every view",
       a.version() == before + 1 && columns.version() == a.version());
  for (const Mutation& m : a.storage()->last_writers()) {
    std::printf("       version %u was made by %s at line %d\n", m.version, m.op,
                static_cast<int>(m.loc.line));
  }

  std::printf("\nreshape() is a view when strides allow it, else a copy; contiguous() likewise\n");
  fact("a.reshape({12}) shares", a.reshape({12}).is_alias_of(a));
  fact("a.t().reshape({12}) had to copy", !columns.reshape({12}).is_alias_of(a));
  fact("a.contiguous() is a itself, uncopied", a.contiguous().is_alias_of(a));

  std::printf(
      "\ndetach() shares bytes and version, and leaves the history behind; clone() shares "
      "nothing\n");
  const Tensor w = ones({2}, requires_grad());
  const Tensor y = w * 2, cut = y.detach(), copy = y.clone();
  fact("detach() needs no gradient", !cut.requires_grad());
  cut.zero_();
  fact("a write to it shows in y", y.sum().item<float>() == 0);
  fact("and raises y's version", y.version() == cut.version());
  fact("the clone still holds 2s", copy.sum().item<float>() == 4);

  std::printf("\nThe storage lives as long as any view of it\n");
  const float* bytes = a.data_ptr<float>();
  const Tensor last = a[2][3];
  a = Tensor();
  fact("one element keeps all twelve alive",
       last.storage()->nbytes() >= 48 && last.data_ptr<float>() == bytes + 11);
  std::printf("       so clone() what you keep of a large tensor: clone has %zu bytes\n",
              static_cast<std::size_t>(last.clone().storage()->nbytes()));
  std::printf("\n%s\n", failures == 0 ? "All as said." : "Something is not as said.");
  return failures == 0 ? 0 : 1;
}
