//go:build linux && amd64 && !detent_portable

package tsc

import (
	"errors"
	"testing"
)

type leaf struct{ a, b, c, d uint32 }

// machine returns CPUID of a table, 0 where it has nothing.
func machine(table map[uint32]leaf) leaves {
	return func(n, _ uint32) (a, b, c, d uint32) {
		l := table[n]
		return l.a, l.b, l.c, l.d
	}
}

const (
	amdB, amdD, amdC       = 0x68747541, 0x69746e65, 0x444d4163 // AuthenticAMD
	intelB, intelD, intelC = 0x756e6547, 0x49656e69, 0x6c65746e // GenuineIntel
)

func TestFeatures(t *testing.T) {
	for _, test := range []struct {
		name  string
		table map[uint32]leaf
		want  features
		ok    bool
	}{
		{"EPYC guest", map[uint32]leaf{
			0: {0x1c, amdB, amdC, amdD}, 0x80000000: {0x80000021, amdB, amdC, amdD}, 0x80000001: {d: 0x2fd3fbff},
			0x80000007: {d: 0x100}, 0x80000021: {a: 0x204},
		}, features{true, true, true}, true},
		{"EPYC of the first generation", map[uint32]leaf{
			0: {0xd, amdB, amdC, amdD}, 0x80000000: {a: 0x8000001f}, 0x80000001: {d: 0x2fd3fbff}, 0x80000007: {d: 0x6799},
		}, features{true, true, false}, true},
		{"Xeon", map[uint32]leaf{
			0: {0x1b, intelB, intelC, intelD}, 0x80000000: {a: 0x80000008}, 0x80000001: {d: 0x2c100800}, 0x80000007: {d: 0x100},
		}, features{true, true, true}, true},
		{"guest without invtsc", map[uint32]leaf{
			0: {0xd, intelB, intelC, intelD}, 0x80000000: {a: 0x80000008}, 0x80000001: {d: 0x2c100800},
		}, features{false, true, true}, false},
		{"leaf beyond the last", map[uint32]leaf{
			0: {0xd, intelB, intelC, intelD}, 0x80000000: {a: 0x80000004}, 0x80000001: {d: 0x2c100800}, 0x80000007: {d: 0x100},
		}, features{false, true, true}, false},
		{"no ordered reading", map[uint32]leaf{
			0: {0xd, amdB, amdC, amdD}, 0x80000000: {a: 0x80000008}, 0x80000007: {d: 0x100},
		}, features{true, false, false}, false},
	} {
		got := readFeatures(machine(test.table))
		err := got.usable()
		if got != test.want || (err == nil) != test.ok || err != nil && !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%s: %+v, usable: %v", test.name, got, err)
		}
	}
}

func TestStatedByCPUID(t *testing.T) {
	const hypervisor = 1 << 31
	for _, test := range []struct {
		name   string
		table  map[uint32]leaf
		hz     float64
		source string
	}{
		{"Ice Lake", map[uint32]leaf{0: {a: 0x1b}, 0x15: {2, 232, 25_000_000, 0}, 0x16: {a: 2900}}, 2_900_000_000, "CPUID 15h"},
		{"Skylake, crystal not stated", map[uint32]leaf{0: {a: 0x16}, 0x15: {2, 250, 0, 0}, 0x16: {a: 3000}}, 3_000_000_000, "CPUID 16h"},
		{"VMware", map[uint32]leaf{0: {a: 0xd}, 1: {c: hypervisor}, 0x40000000: {a: 0x40000010}, 0x40000010: {a: 2599998}}, 2_599_998_000, "CPUID 40000010h"},
		{"KVM without the timing leaf", map[uint32]leaf{0: {a: 0xd}, 1: {c: hypervisor}, 0x40000000: {a: 0x40000001}, 0x40000010: {a: 77}}, 0, ""},
		{"no hypervisor", map[uint32]leaf{0: {a: 0xd}, 0x40000000: {a: 0x40000010}, 0x40000010: {a: 77}}, 0, ""},
		{"AMD", map[uint32]leaf{0: {a: 0x1c}}, 0, ""},
		{"old", map[uint32]leaf{0: {a: 0xd}, 0x15: {2, 250, 25_000_000, 0}}, 0, ""},
	} {
		if hz, source := statedByCPUID(machine(test.table)); hz != test.hz || source != test.source {
			t.Errorf("%s: %.0f by %q", test.name, hz, source)
		}
	}
}

// The kernel's factors for some kHz, by clocks_calc_mult_shift.
func TestPerfFrequency(t *testing.T) {
	for _, test := range []struct {
		mult  uint32
		shift uint16
		khz   float64
	}{
		{1651911769, 32, 2_599_998},
		{825955885, 31, 2_599_998},
		{715827883, 31, 3_000_000},
		{1073741824, 30, 1_000_000},
		{0, 31, 0},
		{1, 64, 0},
	} {
		if hz := perfFrequency(test.mult, test.shift); hz != test.khz*1e3 {
			t.Errorf("perfFrequency(%d, %d) = %.0f, want %.0f kHz", test.mult, test.shift, hz, test.khz)
		}
	}
}

// What this machine states agrees with a fit to 1 %, if it states anything.
func TestStated(t *testing.T) {
	t.Log(readFeatures(cpuid), Check())
	hz, source := Stated()
	if (hz == 0) != (source == "") || hz != 0 && (hz < 1e8 || hz > 2e10) {
		t.Errorf("Stated = %.0f, %q", hz, source)
	}
	t.Logf("%.0f Hz by %q", hz, source)
}
