// windows answers by Go's own time package whether moments lie in a window by the wall clock of a zone: a second opinion
// for the tests. The standard library alone.
module dovetail.test/windows

go 1.26.0
