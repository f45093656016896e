package bpf

//go:generate go tool bpf2go -go-package bpf -target amd64,arm64 -cc clang -strip llvm-strip -cflags "-O2 -g -Wall -Werror" -type clock_key -type clock_use -type clock_stack_key -type hist -type timer_key -type timer_use -type lateness_key -type lateness -type event -type event_type -type part -type drop -type kind -type call -type where -type range -type profile -type profile_stack_key Trace src/trace.c
//go:generate sh -c "{ printf 'clang: '; clang --version | head -n 1; sha256sum src/*; } > made.txt"
