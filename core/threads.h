// How many threads the kernels of the CPU use.
#pragma once

namespace taper {

// At first TAPER_NUM_THREADS, or else the number of processors this process may run on. No result
// depends on it.
int get_num_threads();

// From now on, for all threads of the process. Throws if n < 1.
void set_num_threads(int n);

}  // namespace taper
