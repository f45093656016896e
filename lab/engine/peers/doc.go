// Package peers has timer libraries of other people as engines of the lab: the
// timing wheels that Go programs use most where package time is too slow for them.
//
// Each is used as its users do, with the settings of its own examples, and behind
// the same face as the lab's own engines. The face adds what the libraries lack
// (channels that obey Go 1.23's rules, a Reset) and mends nothing: a library that
// fires early does so here. What each of them does otherwise than package time is
// listed with what was seen, which can be seen again by
//
//	go test -run TestProbes -v ./engine/peers
package peers
