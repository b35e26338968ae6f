from course.report.line import main

main()
