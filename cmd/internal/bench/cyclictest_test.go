package bench

import "testing"

func TestReadCyclictest(t *testing.T) {
	const out = `# /dev/cpu_dma_latency set to 0us
# Histogram
000000 000000
000001 000000
000015 000002
000016 000010
000017 000000
# Min Latencies: 00015
# Avg Latencies: 00016
# Max Latencies: 00016
# Histogram Overflows: 00001
# Histogram Overflow at cycle number:
# Thread 0: 00007
`
	v, err := readCyclictest([]byte(out))
	if err != nil {
		t.Fatal(err)
	}
	// The 7th of 13: the 5th of the 10 that lie within 16 us.
	if got := v["late_p50_us"]; got != 16.45 {
		t.Errorf("p50 is %v", got)
	}
	if got := v["late_max_us"]; got != cyclictestMost {
		t.Errorf("the greatest is %v", got)
	}
	for _, bad := range []string{"", "# Histogram\n", "000001 many\n"} {
		if v, err := readCyclictest([]byte(bad)); err == nil {
			t.Errorf("%q: %v", bad, v)
		}
	}
}
