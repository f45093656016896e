// Package serve is what `detent serve` runs: it watches how one host keeps time,
// and shows it to Prometheus, to programs, and to people.
//
// # What runs
//
// Three goroutines and no more watch the host, whoever looks: the prober, which
// makes a run of package probe now and then and looks at the host's files in
// between; the sampler, which sleeps in each way some times a second; and the
// watcher of processes, where eBPF is to be had, which judges them by the rules of
// package explain. Each puts what it has found into
// the state, whole. Handlers read the state and wait for nothing.
//
// # Ground rules
//
//   - mu of board guards the state. It is held to copy, never while measuring or
//     writing to a client.
//   - A client of the event stream is sent the latest state when it is ready for
//     it. One that is slow misses states, and is sent away if it takes nothing for
//     writeTimeout; it holds up nobody. There are at most maxClients.
package serve
